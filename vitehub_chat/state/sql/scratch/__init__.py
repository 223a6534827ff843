"""The tables as a step sees them that runs on what is known of a store."""
