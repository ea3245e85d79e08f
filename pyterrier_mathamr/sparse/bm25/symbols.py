r"""Tables: names of LaTeX symbols, commands that only lay out, the function words of English."""

from __future__ import annotations

SYMBOL_NAMES: dict[str, str] = {
    "+": "plus", "-": "minus", "=": "equals", "<": "less", ">": "greater", "*": "star", "/": "slash", "!": "factorial",
    "|": "bar", "^": "sup", "_": "sub", "(": "lparen", ")": "rparen", "[": "lbracket", "]": "rbracket", ",": "comma",
    ".": "dot", ":": "colon", ";": "semicolon", "?": "query", "\\{": "lbrace", "\\}": "rbrace", "\\|": "norm",
    "\\%": "percent", "\\#": "hash", "\\_": "underscore", "\\$": "dollar",
}  # fmt: skip
"""Symbols without letters."""

COMMAND_ALIASES: dict[str, str] = {
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "\\le": "\\leq", "\\leqslant": "\\leq", "≤": "\\leq", "\\ge": "\\geq", "\\geqslant": "\\geq", "≥": "\\geq",
    "\\lt": "<", "\\gt": ">", "\\ne": "\\neq", "≠": "\\neq", "\\to": "\\rightarrow", "→": "\\rightarrow",
    "\\Longrightarrow": "\\Rightarrow", "\\implies": "\\Rightarrow", "\\longrightarrow": "\\rightarrow",
    "\\iff": "\\Leftrightarrow", "\\Longleftrightarrow": "\\Leftrightarrow", "\\land": "\\wedge", "\\lor": "\\vee",
    "\\lnot": "\\neg", "\\vert": "|", "\\lvert": "|", "\\rvert": "|", "\\mid": "|", "\\Vert": "\\|", "\\lVert": "\\|",
    "\\rVert": "\\|", "\\lbrace": "\\{", "\\rbrace": "\\}", "\\lbrack": "[", "\\rbrack": "]", "\\colon": ":",
    "\\dots": "\\ldots", "\\cdots": "\\ldots", "\\dotsc": "\\ldots", "\\dotsb": "\\ldots",
    "\\varepsilon": "\\epsilon", "\\varphi": "\\phi", "\\emptyset": "\\varnothing", "∞": "\\infty", "−": "-",
    "\\ast": "*", "\\owns": "\\ni", "∈": "\\in", "\\Bbb": "\\mathbb", "\\smallsetminus": "\\setminus",
}  # fmt: skip
"""Spellings of a symbol, to one of them."""

_LAYOUT = r"""
    \displaystyle \textstyle \scriptstyle \scriptscriptstyle \limits \nolimits \left \right \middle \big \Big \bigg
    \Bigg \bigl \bigr \Bigl \Bigr \biggl \biggr \Biggl \Biggr \bigm \Bigm \quad \qquad \hspace \hfill \phantom \hphantom
    \vphantom \strut \mathstrut \nonumber \label \tag \color \rm \bf \it \tt \sf \cal \mskip \kern \hline
    \cr \newline \allowbreak \mathopen \mathclose \mathbin \mathrel \mathord \mathpunct \mathinner \mathop \mathrm
    \operatorname \, \; \: \! \> \/ \\ { } & $ ~ % \
    """
LAYOUT: frozenset[str] = frozenset(_LAYOUT.split()) | {"\\ ", "\\\n", "\\\t"}
"""Tokens of the look of a formula, not of its content."""

PAIRS_ONLY: frozenset[str] = frozenset({"mathsup", "mathsub", "mathlparen", "mathrparen", "mathcomma", "mathdot"})
"""Names in almost every formula; they are used in pairs of neighbours only."""

_STOP_WORDS = """
    a about above after again against all am an and any are aren as at be because been before being below between both
    but by can cannot could couldn d did didn do does doesn doing don down during each few for from further had hadn has
    hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m ma
    me mightn more most mustn my myself needn no nor not now o of off on once only or other our ours ourselves out over
    own re s same shan she should shouldn so some such t than that the their theirs them themselves then there these
    they this those through to too under until up ve very was wasn we were weren what when where which while who whom
    why will with won would wouldn y you your yours yourself yourselves
    """
STOP_WORDS: frozenset[str] = frozenset(_STOP_WORDS.split())
"""Function words and the tails that the apostrophe leaves (``isn't`` is ``isn`` and ``t``)."""
