"""AMR graphs: the data, its Penman notation, and the parsers that turn posts into graphs.

::

    post ── parsing ──▶ texts ──▶ dependency/      the embedded parser: rules over a dependency tree; others: parsers
                                     │
    graph ◀── parsing ◀──────────── parts          one for each sentence: placeholders unique, one root
      │
    graph, lenient                                 graphs to Penman text and back; text of other programs, with each
                                                   repair counted
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
