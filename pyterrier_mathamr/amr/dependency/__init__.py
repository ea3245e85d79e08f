"""The embedded parser: a small network analyses a sentence, and rules convert its dependency tree to AMR.

    sentence
      │ tokens        as in Universal Dependencies; features; words that the treebank lacks
      │ syntax        the network: tags, heads, relations
      │ conversion    the tree of a sentence and the part of the graph under construction
      │ repairs       corrects what the tree of a mathematical sentence often has wrong
      │ concepts      a node for each content word (`lemmas`), then modals, comparisons, coordinations around it
      │ roles         an edge for each dependency
      ▼ parser        statement, question or command; `DependencyAmrParser`
    part of a graph

`lexicon` has the tables of words that the rules use.
"""

from __future__ import annotations

from .parser import DependencyAmrParser

__all__ = ["DependencyAmrParser"]
