"""SQL as data: every statement has a name and a line that says what it does."""
