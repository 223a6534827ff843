"""Integrations: native plugs for other runtimes, and what needs files of others."""
