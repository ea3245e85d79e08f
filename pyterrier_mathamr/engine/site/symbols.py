r"""The symbols of LaTeX that the browser reads, and its other tables, as the script ``symbols.js``.

What a command means is decided in one place, ``formula.tex``: each command, character and font is converted here when a
site is written, and the browser looks the result up.
"""

from __future__ import annotations

import json
import string
from functools import cache
from typing import Any

from lxml import etree

from pyterrier_mathamr.formula import mathml, opt_from_latex
from pyterrier_mathamr.formula.opt import RELATIONS
from pyterrier_mathamr.formula.tex.atoms import FUNCTIONS, LIMITS, OPERATORS, Atom, Role, identifier, operator
from pyterrier_mathamr.formula.tex.converter import presentation
from pyterrier_mathamr.formula.tex.elements import RULES
from pyterrier_mathamr.sparse.tokens import STOP_WORDS

_NAMES = r"""
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa varkappa lambda mu nu xi pi varpi rho
    varrho sigma varsigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi
    Omega aleph beth hbar imath jmath ell wp Re Im partial infty prime emptyset varnothing nabla surd top bot angle
    measuredangle triangle forall exists nexists neg lnot flat natural sharp clubsuit diamondsuit heartsuit spadesuit
    complement square Box blacksquare checkmark S P dagger ddagger degree
    sum prod coprod int iint iiint oint bigcap bigcup bigsqcup bigvee bigwedge bigodot bigotimes bigoplus biguplus
    pm mp setminus smallsetminus cdot centerdot times ast star diamond circ bullet div cap cup uplus sqcap sqcup
    triangleleft triangleright wr vee lor wedge land oplus ominus otimes oslash odot amalg bigtriangleup
    bigtriangledown ltimes rtimes curlywedge veebar
    leq le leqslant geq ge geqslant neq ne equiv approx sim simeq cong asymp propto in notin ni owns subset subseteq
    subsetneq supset supseteq supsetneq sqsubset sqsubseteq ll gg prec succ preceq succeq preccurlyeq succcurlyeq
    parallel nparallel perp mid nmid models vdash vDash dashv doteq triangleq trianglelefteq lhd unlhd lesssim gtrsim
    nleq ngeq nless ngtr nsubseteq nsim ncong lt gt bowtie smile frown coloneqq because therefore
    leftarrow gets rightarrow to leftrightarrow Leftarrow Rightarrow Leftrightarrow longleftarrow longrightarrow
    longleftrightarrow Longleftarrow Longrightarrow Longleftrightarrow iff implies impliedby mapsto longmapsto uparrow
    downarrow updownarrow Uparrow Downarrow nearrow searrow swarrow nwarrow hookrightarrow hookleftarrow leadsto
    rightharpoonup rightharpoondown rightleftharpoons twoheadrightarrow rightrightarrows rightsquigarrow upharpoonright
    restriction multimap
    sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan exp log ln lg lim limsup liminf sup inf max min
    arg deg det dim gcd hom ker Pr bmod
    cdots vdots ddots colon backslash langle rangle lfloor rfloor lceil rceil lbrace rbrace lbrack rbrack lvert rvert
    vert lVert rVert Vert
    """
_SIGNS = r"\{ \} \| \% \# \& \_"
_CHARACTERS = "+-=<>*/!?|()[],.;:" + "αβγδεζηθικλμνξπρστυφχψωϵϑϕϖϱΓΔΘΛΞΠΣΥΦΨΩℕℤℚℝℂ∞¬…⋯"
_ACCENT_NAMES = (
    "hat bar tilde vec dot ddot check breve acute grave mathring overline underline widehat widetilde overrightarrow "
    "overleftarrow overbrace underbrace"
)
_FONTS = "mathbb mathcal mathscr mathfrak mathbf mathsf mathtt mathit mathrm boldsymbol Bbb"
_NEGATED = r"= < > \in \ni \subset \subseteq \equiv \sim \simeq \approx \cong \mid \parallel \exists \leq \le \geq \ge"
_LETTERS = string.ascii_letters
_WORDS = (*LIMITS, *FUNCTIONS)


@cache
def symbols_script() -> str:
    commands = [rf"\{name}" for name in _NAMES.split()] + _SIGNS.split()
    signs = [sign for sign in OPERATORS if len(sign) == 1 and not "\ue000" <= sign <= "\uf8ff"]
    known = {name: _written(atom) for name in (*commands, *signs, *_CHARACTERS) if (atom := _atom(name)) is not None}
    known |= {name: _written(identifier(name)) for name in (*_LETTERS, *_WORDS)}
    known |= {name: _written(operator(name)) for name in OPERATORS if len(name) == 2}
    known |= {rf"\not{name}": _written(atom) for name in _NEGATED.split() if (atom := _atom(rf"\not{name}"))}
    known["mod"] = known["\\bmod"]
    known["\\ldots"] = known["\\dotsc"] = known["\\dotso"] = known["…"]
    known["\\dotsb"] = known["\\dotsm"] = known["\\dotsi"] = known["\\cdots"]
    roles = {name: value for name, value in vars(Role).items() if name.isupper()}
    accents = {rf"\{name}": _accent(rf"\{name}") for name in _ACCENT_NAMES.split()}
    fonts = {rf"\{name}": "".join(_styled(name, letter) for letter in _LETTERS) for name in _FONTS.split()}
    tables: dict[str, Any] = {
        "ROLE": roles,
        "SYMBOLS": known,
        "ACCENTS": accents,
        "LETTERS": _LETTERS,
        "FONTS": fonts,
        "RELATIONS": sorted(RELATIONS),
        "STOP_WORDS": sorted(STOP_WORDS),
    }
    lines = (f"export const {name} = {_json(value)};\n" for name, value in tables.items())
    return "// Written by `mathamr site` from the tables of pyterrier_mathamr.formula.\n\n" + "".join(lines)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _leaves(latex: str) -> list[etree._Element]:
    """Return the visible symbols of a formula in MathML."""
    root = mathml.parse(presentation(latex, latex)[0])
    return [each for each in root.iter() if not len(each) and (each.text or "").strip(" \u2061\u2063")]


def _atom(latex: str) -> Atom | None:
    """Return the atom of a formula that is one symbol; ``None`` for any other."""
    leaves = _leaves(latex)
    return RULES[leaves[0].tag](leaves[0], []) if len(leaves) == 1 and leaves[0].tag in ("mi", "mo") else None


def _written(atom: Atom) -> list[Any]:
    return [atom.role, atom.node.label, atom.text]


def _accent(command: str) -> str:
    return opt_from_latex(rf"{command}{{x}}").nodes[0].removeprefix("F!")


def _styled(font: str, letter: str) -> str:
    return (_leaves(rf"\{font}{{{letter}}}")[0].text or "").strip("\ufe00\ufe01")
