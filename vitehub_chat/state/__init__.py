"""Agent State: the durability boundary, and the providers behind it."""
