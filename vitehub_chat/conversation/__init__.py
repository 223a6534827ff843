"""Conversations: the flows of a turn, one module each."""
