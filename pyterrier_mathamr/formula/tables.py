"""The formula tables of ARQMath: one row for each formula, in LaTeX, Presentation MathML or Content MathML.

There are two forms, both tab-separated with a header line and quoted like CSV, plain or gzipped:

* of the collection (release v3): ``id post_id thread_id type comment_id old_visual_id visual_id issue formula``
* of the topics: ``id topic_id thread_id type formula`` (in 2020 the last column is named ``slt`` or ``opt``)
"""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr._common.feedback import count_lines
from pyterrier_mathamr._common.types import FormulaId

from .tree import FormulaError

_FORMULA_COLUMNS = ("formula", "latex", "slt", "opt")
_POST_COLUMNS = ("post_id", "topic_id")
_LARGEST_CELL = 64 << 20  # characters; Python's own limit of 131,072 is below some official cells


class FormulaRow(NamedTuple):
    """One row of a formula table; all fields are text, an absent one is the empty string.

    Attributes:
        id: the formula.
        post_id: its post; in a table of topics the topic's number (``A.301``).
        thread_id: the question of the post's thread.
        type: of the post, such as ``answer`` or ``comment``.
        visual_id: the id that formulas of the same appearance share.
        formula: LaTeX or MathML, by the kind of the table.
    """

    id: FormulaId
    post_id: str
    thread_id: str
    type: str
    visual_id: str
    formula: str


def count_rows(path: Path) -> int:
    """Count the rows of a table by its lines: at least as many, as a cell can have several."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return count_lines(cast("IO[bytes]", file)) - 1


def read_formula_table(path: str | Path) -> Iterator[FormulaRow]:
    """Read a formula table row by row, in constant memory.

    Args:
        path: a ``.tsv`` or ``.tsv.gz`` file of one of the two forms.

    Yields:
        The rows in order. A row with too few or too many columns is skipped with a warning that names file and line.

    Raises:
        FormulaError: the header, the quoting or the compression is broken; names file and line.
    """
    path = Path(path)
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))  # a limit of the process: raised, never lowered
    options: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}  # one cell ends no build
    with gzip.open(path, "rt", **options) if path.suffix == ".gz" else path.open(**options) as file:
        reader = csv.reader(file, delimiter="\t", quotechar='"')
        try:
            header = next(reader, [])
            column = {name.strip().lower(): i for i, name in enumerate(header)}
            formula = next((column[name] for name in _FORMULA_COLUMNS if name in column), None)
            if formula is None or "id" not in column:
                names = ", ".join(header) or "nothing"
                raise FormulaError(f"{path}:1: not a formula table: needs columns id and formula, has {names}")
            width = len(header)  # also the column of a field that the table does not have
            post = next((column[name] for name in _POST_COLUMNS if name in column), width)
            others = (column.get(name, width) for name in ("thread_id", "type", "visual_id"))
            fields = itemgetter(column["id"], post, *others, formula)
            for cells in reader:
                if len(cells) == width:
                    cells.append("")
                    yield FormulaRow._make(fields(cells))
                elif cells:
                    message = f"{path}:{reader.line_num}: {len(cells)} columns instead of {width}; row skipped"
                    warnings.warn(message, MathAMRWarning, stacklevel=2)
        except (csv.Error, EOFError, OSError) as error:
            raise FormulaError(f"{path}:{reader.line_num + 1}: {error}") from error
