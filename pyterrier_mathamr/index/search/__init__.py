"""From query embeddings to the best documents of a folder: candidates, exact scores, ranking; begin at ``folder``."""
