"""Drivers: what answers a prepared call."""
