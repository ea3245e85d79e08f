"""Training: pairs and their negatives, batches, losses, the loop, its checkpoints and processes (MathAMR+, 3.4)."""
