"""Explanations for users: which parts of a post contribute to its score; pictures of graphs, scores and experiments.

::

    any retriever or scorer ──▶ Explanation       a score as the sum of its parts, as text and as HTML
    graphs, vectors         ──▶ explain_maxsim    the best match of each virtual node of the query
                            ──▶ maxsim/           two texts side by side, and the weighted cosines
    graphs, formulas        ──▶ draw_graph, draw_formula
    table of an experiment  ──▶ charts            differences by topic, speed against quality: figures of matplotlib
    points of a figure      ──▶ labels            names beside them that cover nothing

What an explanation is lies in :mod:`pyterrier_mathamr.explanation`, below the systems that give one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from pyterrier_mathamr.explanation import AlignmentError as AlignmentError
    from pyterrier_mathamr.explanation import Asked as Asked
    from pyterrier_mathamr.explanation import AskedError as AskedError
    from pyterrier_mathamr.explanation import ExplainError as ExplainError
    from pyterrier_mathamr.explanation import Explanation as Explanation
    from pyterrier_mathamr.explanation import Part as Part
    from pyterrier_mathamr.explanation import QueryRow as QueryRow
    from pyterrier_mathamr.explanation import Ranked as Ranked
    from pyterrier_mathamr.explanation import Reading as Reading
    from pyterrier_mathamr.explanation import explain_maxsim as explain_maxsim
    from pyterrier_mathamr.explanation import explain_score as explain_score
    from pyterrier_mathamr.explanation import explained as explained
    from pyterrier_mathamr.explanation import name_of as name_of
    from pyterrier_mathamr.explanation import read_asked as read_asked
    from pyterrier_mathamr.explanation import virtual_nodes as virtual_nodes
    from pyterrier_mathamr.formula.display.formula_drawing import draw_formula as draw_formula
    from pyterrier_mathamr.graph.drawing.graph_drawing import draw_graph as draw_graph

    from .charts import draw_speed as draw_speed
    from .charts import draw_topic_differences as draw_topic_differences
    from .charts import topic_differences as topic_differences
    from .errors import ChartError as ChartError
    from .figures import Picture as Picture
    from .figures import save as save
    from .maxsim.comparison import similarities as similarities
    from .maxsim.drawing import draw_maxsim as draw_maxsim

__getattr__, __dir__, __all__ = lazy_names(__name__)
