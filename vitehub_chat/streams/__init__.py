"""Streams: events of a run in the forms that programs and clients read."""
