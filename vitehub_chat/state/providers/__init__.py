"""Providers of Agent State; nothing but their door imports them."""
