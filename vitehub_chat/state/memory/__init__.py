"""The tables in memory: the reference that other stores are compared with."""
