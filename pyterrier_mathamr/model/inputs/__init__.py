"""What goes into a network: the arrays of graphs, in batches that fit into memory, on a device."""
