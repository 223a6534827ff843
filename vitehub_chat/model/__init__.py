"""Values: frozen, without behaviour that needs a clock, a store or the network."""
