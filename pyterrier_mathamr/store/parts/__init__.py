"""A part of an artifact: its arrays, its ids and its deleted rows; how it is written, read and merged with others."""
