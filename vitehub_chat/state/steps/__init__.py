"""Steps: what every operation of the contract does inside one transaction, for all providers."""
