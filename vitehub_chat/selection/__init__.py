"""Pure decisions: which messages a call sees. Time and ids are arguments, results are plans."""
