"""The folder of an index in parts: ``pt_meta.json`` names the parts, each a complete index of its own.

::

    arqmath.mathamr/
      pt_meta.json          the parts in order, with the checksum of the manifest of each; replaced in one step
      part-000000/          a MathAMRIndex
      part-000001/
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyterrier_mathamr.store import META, Compound, DamagedError, is_identity

PARTS = Compound("sharded_index", 1, rebuild="mathamr index GRAPHS MODEL -o {path} --parts N")
PART = re.compile(r"part-[0-9]{6,12}")


@dataclass(frozen=True, slots=True)
class PartRecord:
    """One part as the manifest knows it.

    Attributes:
        name: of its folder.
        identity: the checksum of its manifest.
        documents: how many it has.
    """

    name: str
    identity: str
    documents: int


def read_parts(path: Path) -> list[PartRecord]:
    """Read the manifest of an index in parts."""
    details = PARTS.read(path)
    try:
        parts = [PartRecord(**entry) for entry in details["parts"]]
        if not parts or not all(
            PART.fullmatch(part.name) and is_identity(part.identity) and part.documents >= 0 for part in parts
        ):
            raise ValueError("no part, or one of an impossible name, identity or size")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(path / META, f"a key is missing or wrong ({error!r:.200})") from error
    return parts


def write_parts(path: Path, parts: Sequence[PartRecord]) -> None:
    """Write the manifest, durably and in one step."""
    PARTS.write(path, sum(part.documents for part in parts), {"parts": [asdict(part) for part in parts]})
