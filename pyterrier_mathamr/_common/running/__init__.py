"""How work runs: in several processes, on a cluster, or kept on one thread."""
