"""The encoder of the paper: R-GCN layers, projection head and MaxSim (MathAMR+, 3.3 and 3.5)."""
