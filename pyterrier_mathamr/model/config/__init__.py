"""What a model is, as values that are checked and stored: its configuration and its groups of options."""
