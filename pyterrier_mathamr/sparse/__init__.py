"""One inverted index on disk, with BM25 over words and formulas and Tangent over symbol pairs.

::

    rows of a frame or a corpus ──reading──▶ posts ──(each system: terms)──▶ postings, texts ──index──▶ one part
                                                                                 │
                                    queries ──(each system: scores)──▶ ranking ◀─┘
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
