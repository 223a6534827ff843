"""Fakes for tests of agents and of Agent State providers."""
