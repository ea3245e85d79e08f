"""The systems of the protocol: strategies of one model, fusions, ensembles, and all of them by name."""
