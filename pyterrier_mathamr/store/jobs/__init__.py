"""The one writer of an artifact: its lock, the parts it finishes, and the work it leaves when it dies."""
