"""Memory: what is archived across conversations before it is condensed."""
