"""What is the same for every model on disk, whatever is in it."""
