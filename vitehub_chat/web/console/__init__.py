"""The console: conversations in a browser, for whoever looks after an agent."""
