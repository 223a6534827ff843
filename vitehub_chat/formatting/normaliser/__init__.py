"""The normaliser: one module per step, and `pipeline` for their order."""
