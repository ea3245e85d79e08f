"""BM25 over the terms of MathAMR graphs, without training: what an encoder of graphs has to be better than.

::

    graph ──terms──▶ edges, nodes, concepts, relations ──indexer──▶ one field of postings for each kind
                                                                        │
                     ranking ◀──retriever── Σ weight · BM25 of a field ─┘
"""

from __future__ import annotations

from .index import GraphTermsIndex as GraphTermsIndex
from .indexer import GraphTermsIndexer as GraphTermsIndexer
from .retriever import GraphTermsRetriever as GraphTermsRetriever
from .scorer import GraphTermsScorer as GraphTermsScorer
from .terms import FIELDS as FIELDS
from .terms import GraphField as GraphField
from .terms import GraphTerms as GraphTerms
from .terms import terms_of_graph as terms_of_graph
