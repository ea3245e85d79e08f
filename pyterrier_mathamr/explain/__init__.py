"""Explanations for users: which parts of a post contribute to its score; pictures of graphs, scores and experiments.

::

    any retriever or scorer ──▶ Explanation       a score as the sum of its parts, as text and as HTML
    graphs, vectors         ──▶ explain_maxsim    the best match of each virtual node of the query
                            ──▶ maxsim/           two texts side by side, and the weighted cosines
    graphs, formulas        ──▶ draw_graph, draw_formula
    table of an experiment  ──▶ charts            differences by topic, speed against quality: figures of matplotlib
    points of a figure      ──▶ labels            names beside them that cover nothing
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
