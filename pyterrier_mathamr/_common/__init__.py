"""What every room may use: names, errors and small helpers. Imports nothing of the rooms."""
