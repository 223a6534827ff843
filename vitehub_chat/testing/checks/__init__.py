"""Checks of Agent State providers, one module per Protocol or subject."""
