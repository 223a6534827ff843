"""What can be looked up in a store that is reached by requests."""
