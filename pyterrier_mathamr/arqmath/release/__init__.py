"""A local copy of the release as a whole."""
