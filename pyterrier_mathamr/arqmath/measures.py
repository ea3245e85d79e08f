"""The measures of ARQMath as declarations.

A prime measure (nDCG', MAP', P') is the plain one after the unjudged documents were taken out, which ``judged_only``
does before the cut-off. Bpref looks at judged documents alone and has no such form. ``rel=2``: a grade of 2 or 3 is
relevant; the judgements themselves stay as they are, since a document judged 0 or 1 is judged.
"""

from __future__ import annotations

from typing import Any

from ir_measures import AP, Bpref, P, nDCG

TASK1_MEASURES: list[Any] = [
    nDCG(judged_only=True) @ 1000,
    AP(rel=2, judged_only=True) @ 1000,
    P(rel=2, judged_only=True) @ 10,
    Bpref(rel=2),
]
"""The measures of Task 1: nDCG', MAP' and P'@10, binary ones at grade 2 or better, and Bpref. A topic whose run has no
judged document counts 0 here; the C program trec_eval without ``-c`` leaves it out of the mean."""
