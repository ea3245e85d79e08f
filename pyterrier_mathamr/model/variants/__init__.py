"""What goes beyond the paper's model: text and words as features, weights of the score, first weights."""
