"""Commands that ``mathamr`` has where the systems are installed, by entry points."""
