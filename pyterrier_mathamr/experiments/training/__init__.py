"""Training on the pairs of sources, and the negatives that are mined for it."""
