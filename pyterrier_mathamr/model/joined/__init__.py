"""Several models as one: the rows of each, side by side."""
