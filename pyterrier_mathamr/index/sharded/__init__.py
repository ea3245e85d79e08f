"""Exact search over parts: several indexes that are searched as one, each where it is.

::

    ShardedIndex ── snapshot ──ask──▶ places ──▶ processes, actors    one MathAMRIndex each, opened where it is
         │              └── merges the best of each part: score descending, docno ascending
         └── folder      the parts and their manifest: built by `filling`, joined, read
"""
