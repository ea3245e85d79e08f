"""Explanations: which parts of a post contribute to its score, and pictures of graphs, scores and experiments.

::

    graphs, vectors ──▶ alignment      MaxSim: the best match of each virtual node of the query
                    ──▶ maxsim/        two texts side by side, and the weighted cosines
    table of an experiment ──▶ charts  differences by topic, speed against quality: figures of matplotlib
    graphs, formulas ──▶ graphs/       virtual nodes, sentences (paragraphs), formulas (typesetting) and their trees
    posts ──▶ rendering                formulas as MathML inside their sentences
    any retriever or scorer ──▶ scores Explanation: a score as the sum of its parts, as text and as HTML
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from .alignment import explain_maxsim as explain_maxsim
    from .alignment import virtual_nodes as virtual_nodes
    from .charts import draw_speed as draw_speed
    from .charts import draw_topic_differences as draw_topic_differences
    from .charts import topic_differences as topic_differences
    from .errors import AlignmentError as AlignmentError
    from .errors import AskedError as AskedError
    from .errors import ChartError as ChartError
    from .errors import ExplainError as ExplainError
    from .figures import Picture as Picture
    from .figures import save as save
    from .graphs.formula_drawing import draw_formula as draw_formula
    from .graphs.graph_drawing import draw_graph as draw_graph
    from .maxsim.comparison import similarities as similarities
    from .maxsim.drawing import draw_maxsim as draw_maxsim
    from .scores import Explanation as Explanation
    from .scores import Part as Part
    from .scores import Reading as Reading
    from .scores.asking import Asked as Asked
    from .scores.asking import QueryRow as QueryRow
    from .scores.asking import read_asked as read_asked
    from .scores.pipelines import Ranked as Ranked
    from .scores.pipelines import explain_score as explain_score
    from .scores.pipelines import explained as explained
    from .scores.pipelines import name_of as name_of

__getattr__, __dir__, __all__ = lazy_names(__name__)
