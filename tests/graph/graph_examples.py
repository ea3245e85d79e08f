"""Small graphs that the tests of this layer share, written out in full."""

from pyterrier_mathamr.amr import decode_penman
from pyterrier_mathamr.formula import FormulaPair, FormulaTree
from pyterrier_mathamr.graph import MathAMRGraph
from pyterrier_mathamr.graph.mathamr import attach_formulas

# x = 2
OPT = FormulaTree(("U!eq", "V!𝑥", "N!2"), ((0, 1, "0"), (0, 2, "0")))
SLT = FormulaTree(("V!x", "=", "N!2"), ((0, 1, "n"), (1, 2, "n")))
# f of a pair: labels that Penman must quote, and one label twice on a path
OPT_PAIR = FormulaTree(("U!times", "V!f", "O!interval(O-O)", "V!f"), ((0, 1, "0"), (0, 2, "0"), (2, 3, "1")))
SLT_PAIR = FormulaTree(("V!f", "M!()1x2", "V!f", "&comma;"), ((0, 1, "n"), (1, 2, "w"), (2, 3, "n")))

BOTH = FormulaPair(slt=SLT, opt=OPT)
PAIRS = (BOTH, FormulaPair(slt=SLT_PAIR, opt=OPT_PAIR), FormulaPair(slt=None, opt=None))

# Three sentences, the last two in a nested multi-sentence; the last mentions the first; FORMULA_2 was dropped.
TEXT = """
(m / multi-sentence
   :snt1 (e / equal-01
      :ARG1 (f / FORMULA_0)
      :polarity -)
   :snt2 (n / multi-sentence
      :snt1 (q / quick
         :ARG1-of (r / run-01))
      :snt2 (s / solve-01
         :ARG1 e
         :ARG2 (g / FORMULA_1)))
   :math (h / FORMULA_2))
"""


def whole(formulas="both"):
    """The graph of TEXT with all its trees."""
    return MathAMRGraph(attach_formulas(decode_penman(TEXT), PAIRS, formulas), ("11", "", "13"), "154")


def one_sentence():
    """A graph of one sentence and one formula, small enough to work everything out by hand."""
    return MathAMRGraph(attach_formulas(decode_penman("(e / equal-01 :ARG1 (f / FORMULA_0))"), (BOTH,)), ("7",), "1")
