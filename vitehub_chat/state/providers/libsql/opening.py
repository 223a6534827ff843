"""Opening: from a URL and options to a state on a remote libSQL server."""

from __future__ import annotations
