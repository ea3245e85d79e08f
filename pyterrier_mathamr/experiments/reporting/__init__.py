"""What a run says: measured figures with their costs and versions, and published ones apart from them."""
