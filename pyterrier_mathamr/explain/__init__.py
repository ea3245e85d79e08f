"""Explanations for users: which parts of a post contribute to its score; pictures of graphs and scores.

::

    any retriever or scorer ──▶ asking         one query and one document; a pipeline explains by its last scoring stage
                            ──▶ explanation    a score as the sum of its parts, as text and as HTML
    graphs, vectors         ──▶ maxsim         the best match of each virtual node of the query; weighted cosines
                            ──▶ drawings       two texts side by side; a graph, a formula
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
