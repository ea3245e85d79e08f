"""The official trees of a collection in one SQLite file."""
