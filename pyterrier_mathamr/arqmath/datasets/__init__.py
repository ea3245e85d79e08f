"""ARQMath as datasets of ir_datasets and PyTerrier."""
