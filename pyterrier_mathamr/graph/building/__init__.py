"""Posts and queries to graphs."""
