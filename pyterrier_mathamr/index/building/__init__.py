"""Building an index: from a stream of records to parts on disk."""
