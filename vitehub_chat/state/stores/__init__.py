"""The Protocols of the contract over the steps, one module each."""
