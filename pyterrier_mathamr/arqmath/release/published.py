"""Counts of the complete release, published by the organisers and in the MathAMR+ paper."""

from __future__ import annotations

from collections.abc import Mapping

DOCUMENT_COUNTS: Mapping[str, int] = {
    "posts": 2_466_080,
    "questions": 1_020_585,
    "answers": 1_445_495,
    "formulas": 28_320_920,
}
"""Documents of the release, version 1.3 of the posts and version 3 of the formula tables (MathAMR+, Table 4.3)."""

TOPIC_COUNTS: Mapping[str, int] = {
    "2020/task1": 98,
    "2022/task1": 100,
    "2022/task2": 100,
    "2022/task3": 100,
}
"""Topics in the official files; fewer are judged."""

JUDGMENT_COUNTS: Mapping[str, int] = {
    "2020/task1": 39_124,
    "2020/task2": 12_115,
    "2020/task2/visual": 6_074,
    "2022/task1": 34_847,
    "2022/task2": 16_189,
    "2022/task2/visual": 11_538,
    "2022/task3": 722,
}
"""Graded lines of the official judgments of the test topics; the 70 lines of Task 3 with code 5 or 6 are no grades."""

TABLE_4_3: Mapping[str, int] = {
    "Total posts": DOCUMENT_COUNTS["posts"],
    "Question posts": DOCUMENT_COUNTS["questions"],
    "Answer posts": DOCUMENT_COUNTS["answers"],
    "Mathematical formulas": DOCUMENT_COUNTS["formulas"],
    "Task 1 topics": 78,
    "Task 2 topics": 76,
    "Task 1 total judgments": 34_847,
    "Task 1 unique judged answer posts": 33_383,
    "Task 2 total judgments": 11_538,
    "Task 2 unique judged formulas": 9_975,
    "Training pairs (question + accepted answer)": 545_638,
    "Task 1 retrieval index (answer posts)": 1_365_254,
    "Task 2 retrieval index (question+answer posts)": 2_058_341,
}
"""MathAMR+, Table 4.3: ARQMath-3 benchmark and MathAMR+ corpus statistics, as printed."""
