"""How work runs: in several processes, kept on one thread, and how a command ends."""
