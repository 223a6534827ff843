"""The command `vitehub-chat`; needs the extra `cli`."""
