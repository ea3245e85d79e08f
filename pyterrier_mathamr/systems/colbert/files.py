"""What `ColBERT.save` adds to the files of sentence-transformers: the options, and a checksum of each file.

::

    modules.json, …       as sentence-transformers writes them
    mathamr_colbert.json  {"format": 1, "options": {…}, "files": {name: sha256}, "checksum": <of all of the above>}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.model.errors import ModelFileError
from pyterrier_mathamr.model.saving.description import read_description, sum_faults, sums_of
from pyterrier_mathamr.store import signed, write_file

from .options import ColBERTOptions

DESCRIPTION = "mathamr_colbert.json"
FORMAT_VERSION = 1


def write_description(folder: Path, options: ColBERTOptions) -> None:
    """Describe a model's folder, when all other files are written."""
    content = {"format": FORMAT_VERSION, "options": options.to_dict(), "files": sums_of(folder)}
    write_file(folder / DESCRIPTION, (signed(content),))


def read_options(folder: Path) -> ColBERTOptions | None:
    """Read the options of a model's folder; ``None`` for a checkpoint that others wrote."""
    return ColBERTOptions.from_dict(_read(folder)["options"]) if (folder / DESCRIPTION).is_file() else None


def colbert_faults(folder: Path) -> Iterator[MathAMRError]:
    """Compare the files of a model with their checksums, and yield what is wrong."""
    try:
        sums = _read(folder)["files"]
    except ModelFileError as error:
        yield error
        return
    yield from sum_faults(folder, sums)


def _read(folder: Path) -> dict[str, Any]:
    def read(content: dict[str, Any]) -> dict[str, Any]:
        return {"options": dict(content["options"]), "files": dict(content["files"])}

    return read_description(folder / DESCRIPTION, FORMAT_VERSION, "description of a ColBERT model", read)
