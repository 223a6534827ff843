"""The small agent runtime: definitions, capabilities, triggers, drivers."""
