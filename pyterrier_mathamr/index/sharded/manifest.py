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

from pyterrier_mathamr.store import (
    META,
    PACKAGE,
    DamagedError,
    NotBuiltError,
    check_kind,
    parse_json,
    read_signed,
    replace_file,
    signed,
)

TYPE, FORMAT, VERSION = "sharded_index", "mathamr", 1
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
    """Read the manifest of an index in parts.

    Raises:
        NotBuiltError: there is none. OtherArtifactError: the folder holds something else.
        FormatError: it has a format that this release does not read. DamagedError: it was changed.
    """
    file = path / META
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotBuiltError(path, "there is no finished index in parts here") from error
    except OSError as error:
        raise DamagedError(file, f"it cannot be read ({error.strerror or error})") from error
    rebuild = "mathamr index GRAPHS MODEL -o {path} --parts N"
    check_kind(parse_json(data, file), path, f"{TYPE}.{FORMAT}", VERSION, rebuild)
    try:
        parts = [PartRecord(**entry) for entry in read_signed(file)["details"]["parts"]]
        if not parts or not all(PART.fullmatch(part.name) and part.documents >= 0 for part in parts):
            raise ValueError("no part, or one of an impossible name or size")
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(file, f"a key is missing or wrong ({error!r:.200})") from error
    return parts


def write_parts(path: Path, parts: Sequence[PartRecord]) -> None:
    """Write the manifest, durably and in one step."""
    about = {"type": TYPE, "format": FORMAT, "package_hint": PACKAGE, "format_version": VERSION}
    details = {"parts": [asdict(part) for part in parts]}
    replace_file(path / META, signed({**about, "count": sum(part.documents for part in parts), "details": details}))
