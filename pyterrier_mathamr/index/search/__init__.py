"""Searching an index: from query embeddings to the best documents."""
