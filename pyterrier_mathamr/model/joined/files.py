"""The files of a joined model: a description, and a folder for each part. Nothing is unpickled.

::

    config.json   {"format": 2, "parts": [{"share": 0.5, "identity": <of the model>, "bundled": "mathamr-plus-mini"},
                                          {"share": 0.5, "identity": …, "bundled": null}], "score": {…}, "checksum": …}
    part-1/       a model, as ``MathAMR.save`` writes it; one that comes with the package is named in place of copied
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr.model.config.options import ScoreOptions
from pyterrier_mathamr.model.errors import ModelFileError
from pyterrier_mathamr.model.saving.files import CONFIG, LARGEST_CONFIG, model_faults, read_manifest
from pyterrier_mathamr.model.saving.places import BUNDLED, bundled_models
from pyterrier_mathamr.store import StoreError, read_signed, signed, write_file

JOINED_FORMAT = 2
"""Releases that know no joined models say that they do not read this format."""

_MOST = 16


class Joint(NamedTuple):
    """The content of the description.

    Attributes:
        shares: of each part in the product of two rows; together 1.
        identities: of each part.
        bundled: the name of each part that comes with the package.
        score: the weights of rows in a score.
    """

    shares: tuple[float, ...]
    identities: tuple[str, ...]
    bundled: tuple[str | None, ...]
    score: ScoreOptions

    def folders(self, folder: Path) -> list[Path]:
        """Return where the parts are of the joined model in a folder."""
        own = part_folders(folder, len(self.shares))
        return [BUNDLED / name if name else path for name, path in zip(self.bundled, own, strict=True)]

    def write(self, folder: Path) -> None:
        """Write ``config.json``, synced."""
        parts = [
            {"share": share, "identity": identity, "bundled": name}
            for share, identity, name in zip(self.shares, self.identities, self.bundled, strict=True)
        ]
        content = {"format": JOINED_FORMAT, "parts": parts, "score": dataclasses.asdict(self.score)}
        write_file(folder / CONFIG, (signed(content),))


def part_folders(folder: Path, count: int) -> list[Path]:
    """Return where the parts of a joined model are that do not come with the package."""
    return [folder / f"part-{number}" for number in range(count)]


def is_joined(folder: Path) -> bool:
    """Tell whether the model in a folder is joined; one that cannot be read is not."""
    path = folder / CONFIG
    try:
        content = parse_json(path.read_bytes()) if path.stat().st_size <= LARGEST_CONFIG else None
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("format") == JOINED_FORMAT


def read_joint(folder: Path) -> Joint:
    """Read and check the description, and that each part is the model that it names."""
    path = folder / CONFIG
    try:
        joint = _joint(read_signed(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MathAMRError) as error:
        raise ModelFileError(path, f"no description of a joined model ({type(error).__name__}: {error})") from error
    for part, identity in zip(joint.folders(folder), joint.identities, strict=True):
        if read_manifest(part).identity != identity:
            raise ModelFileError(part / CONFIG, f"another model than {CONFIG} of the joined model names")
    return joint


def _joint(content: dict[str, Any]) -> Joint:
    """Check what the description says."""
    parts: Sequence[dict[str, Any]] = content["parts"]
    if not 2 <= len(parts) <= _MOST:
        raise ValueError(f"{len(parts)} parts")
    shares = tuple(float(part["share"]) for part in parts)
    if not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise ValueError(f"shares {shares}")
    names = tuple(part["bundled"] for part in parts)
    if unknown := set(names) - {None, *bundled_models()}:
        raise ValueError(f"no bundled models {sorted(map(str, unknown))}")
    identities = tuple(str(part["identity"]) for part in parts)
    return Joint(shares, identities, names, ScoreOptions(**content["score"]))


def joined_faults(folder: Path) -> Iterator[MathAMRError]:
    """Read the files of a joined model, compare every checksum, and yield what is wrong."""
    try:
        folders = _joint(read_signed(folder / CONFIG)).folders(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MathAMRError) as error:
        reason = error.reason if isinstance(error, StoreError) else str(error)
        yield ModelFileError(folder / CONFIG, reason)
        return
    faults = [fault for part in folders for fault in model_faults(part)]
    yield from faults
    if not faults:
        try:
            read_joint(folder)
        except ModelFileError as error:
            yield error
