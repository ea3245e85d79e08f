"""Penman notation: the text form of AMR graphs, without recursion, so that a graph may be as deep as memory allows.

    text ── reader ──▶ AmrGraph ── writer ──▶ text       strict: what penman 1.3 reads and writes
      └─ lenient: repair ── reader ──▶ AmrGraph           text of other programs, with each repair counted
    atoms                                                 what is a symbol, a role; quoting and unquoting

::

    Record := ('#' ('::' Key Value)*)* Node              Role   := ':' and all up to space " ( ) / : ~
    Node   := '(' Variable ('/' Atom?)? Edge* ')'        Atom   := Symbol | '"' ... '"', with an alignment ~e.4 or none
    Edge   := Role (Atom | Node)?                        Symbol := one or more characters up to space " ( ) / : ~

For input that penman 1.3 accepts, the graph is that of ``penman.decode`` and the text that of ``penman.encode``, with
three exceptions that are errors here: text after the graph, a variable defined twice, and the empty node ``()``. An
edge that is written twice is kept twice, where penman loses its position.
"""

from __future__ import annotations

from .lenient import LenientGraph, decode_leniently
from .reader import PenmanRecord, decode_penman, iter_penman, iter_records
from .writer import check_penman, encode_penman

__all__ = [
    "LenientGraph",
    "PenmanRecord",
    "check_penman",
    "decode_leniently",
    "decode_penman",
    "encode_penman",
    "iter_penman",
    "iter_records",
]
