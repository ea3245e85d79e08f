"""The kinds of arrays in this room. Imports nothing of the package."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

Rows = npt.NDArray[np.float32]
"""Vectors, float32 ``[r, d]``."""

StoredRows = npt.NDArray[np.float32] | npt.NDArray[np.float16]
"""Vectors as a file holds them, ``[r, d]``; what is computed with them is float32 or double."""

Codes = npt.NDArray[np.int8]
"""Vectors as bytes, int8 ``[r, d]``."""

Scores = npt.NDArray[np.float32]
"""Similarities, float32."""

Numbers = npt.NDArray[np.int64]
"""Documents by number, or offsets, int64."""

Sources = npt.NDArray[np.uint64]
"""Documents of a corpus, uint64 ``[s, 2]``: a hash of the docno, and one of the document."""

Weights = npt.NDArray[np.float64]
"""Weights of query rows, or bounds, float64."""

Field = Literal["all", "doc"]
"""Which vectors are read: all of a document, or its VIRTUAL_DOCUMENT alone (MathAMR+, section 3.5.1)."""
