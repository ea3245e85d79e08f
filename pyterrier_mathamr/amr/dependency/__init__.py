"""The embedded parser: a small network analyzes a sentence, and rules convert its dependency tree to AMR.

    sentence
      │ syntax        tokens, with the network's tags, heads and relations
      │ conversion    the tree of a sentence, corrected, and the part of the graph under construction
      │ rules         a node for each content word, modals, comparisons, coordinations around it, edges
      ▼ parser        statement, question or command; `DependencyAmrParser`
    part of a graph

`lexicon` has the tables of words that the rules use.
"""

from __future__ import annotations

from .parser import DependencyAmrParser

__all__ = ["DependencyAmrParser"]
