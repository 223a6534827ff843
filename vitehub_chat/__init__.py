"""Chat history, sessions and context for Python agents."""
