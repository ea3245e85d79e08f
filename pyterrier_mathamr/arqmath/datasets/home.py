"""The local copy of the release: set in the process, by ``ARQMATH_HOME``, or in ir_datasets' home."""

from __future__ import annotations

import os
from pathlib import Path

from pyterrier_mathamr.arqmath.collection import ARQMathCollection
from pyterrier_mathamr.arqmath.errors import NoLocalCopyError

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
"""The bundled sample collection, in the layout of the release."""

_named: list[Path] = []  # the folder of register_arqmath, if it was called


def register_arqmath(path: str | Path) -> ARQMathCollection:
    """Use a local copy of the release for ``irds:arqmath/…`` in this process; a later call replaces it.

    Its files are read when a dataset is iterated.

    Args:
        path: the folder into which the release, or a part in its layout, was unpacked.

    Returns:
        The collection, for what is not in the datasets (formula tables, pairs, links).

    Raises:
        ARQMathError: there is no such folder; an earlier copy stays in use.
    """
    from .definitions import register

    collection = ARQMathCollection(Path(path).expanduser().resolve())
    _named[:] = [collection.path]
    register()
    return collection


def locate(dataset: str) -> ARQMathCollection:
    """Return the collection that a dataset reads.

    Args:
        dataset: its id, such as ``arqmath/2022/task1``.

    Raises:
        NoLocalCopyError: no copy is known, or the folder in ``ARQMATH_HOME`` does not exist.
    """
    if dataset.split("/")[1:2] == ["sample"]:
        return ARQMathCollection(SAMPLE)
    from ir_datasets.util import home_path

    variable = os.environ.get("ARQMATH_HOME")
    default = Path(home_path()) / "arqmath"
    place = _named[0] if _named else Path(variable).expanduser() if variable else default
    if not place.is_dir():
        named = f"register_arqmath: {_named[0]}" if _named else "register_arqmath: not called"
        places = f"{named}; ARQMATH_HOME: {variable or 'not set'}; {default}"
        raise NoLocalCopyError(f"{dataset} needs a local copy of the ARQMath release; there is none at: {places}.")
    return ARQMathCollection(place)
