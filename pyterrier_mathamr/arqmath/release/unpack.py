"""Unpack the archives of a release into the files that are read; the archives are kept."""

from __future__ import annotations

import bz2
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pyterrier_mathamr._common.errors import require
from pyterrier_mathamr._common.feedback import progress
from pyterrier_mathamr.arqmath.errors import DOWNLOAD_PAGE, ARQMathError
from pyterrier_mathamr.store import move

from .inventory import inventory

_ONE_FILE: dict[str, Callable[[Path], IO[bytes]]] = {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
_BROKEN = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tarfile.TarError)


def packed_files(folder: Path) -> list[Path]:
    """List the archives in a folder that have files to read; only names are read."""
    return [item.files[0] for item in inventory(folder) if item.state == "packed"]


def unpack_release(folder: Path, output: Path | None = None, *, verbose: bool = False) -> list[Path]:
    """Unpack each archive of the release whose content is not unpacked yet.

    ``.zip``, ``.bz2``, ``.xz`` and ``.tar.gz`` need no other package, ``.7z`` the extra ``archives``. Gzipped files
    (``Posts.V1.3.xml.gz``, ``1.tsv.gz``) are read without unpacking. The content is moved into place when it is
    complete, so an interrupted run leaves no partial file. Nothing is downloaded or deleted.

    Args:
        folder: the local copy.
        output: the folder for the content; by default that of each archive.
        verbose: whether to show progress.

    Returns:
        The unpacked files and folders of formula tables.

    Raises:
        ARQMathError: an archive is broken, or would write outside its folder.
        MissingExtraError: there is a ``.7z`` and py7zr is not installed.
    """
    made: list[Path] = []
    for archive in progress(packed_files(folder), "unpacking", "archives", verbose=verbose):
        target = output if output is not None else archive.parent
        target.mkdir(parents=True, exist_ok=True)
        made += _unpack(archive, target)
    return made


def _unpack(archive: Path, target: Path) -> list[Path]:
    fresh = target / f".{archive.name}.unpacking"
    shutil.rmtree(fresh, ignore_errors=True)
    content, ready = fresh / "content", fresh / "ready"
    content.mkdir(parents=True)
    ready.mkdir()
    try:
        _extract(archive, content)
        return [_move(path, target / path.name) for path in _as_read(archive, content, ready)]
    except _BROKEN as error:
        raise _error(archive, str(error) or type(error).__name__) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _extract(archive: Path, fresh: Path) -> None:
    """Unpack an archive into an empty folder, outside of which no member may be written."""
    name = archive.name.lower()
    if name.endswith(".zip"):
        with zipfile.ZipFile(archive) as file:
            _check_names(archive, file.namelist())
            file.extractall(fresh)
    elif name.endswith(".7z"):
        py7zr = require("py7zr", "archives")
        try:
            with py7zr.SevenZipFile(archive) as file:
                _check_names(archive, file.getnames())
                file.extractall(fresh)
        except py7zr.exceptions.ArchiveError as error:
            raise _error(archive, str(error)) from error
    elif name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(archive) as tar:
            members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
            _check_names(archive, [member.name for member in members])
            for member in members:
                tar.extract(member, fresh, set_attrs=False)
    else:
        with _ONE_FILE[archive.suffix.lower()](archive) as source, (fresh / archive.stem).open("wb") as out:
            shutil.copyfileobj(source, out, 1 << 20)


def _check_names(archive: Path, names: list[str]) -> None:
    for name in names:
        if name.startswith(("/", "\\")) or ".." in Path(name.replace("\\", "/")).parts:
            raise _error(archive, f"its member {name!r} would be written outside of its folder")


def _as_read(archive: Path, content: Path, ready: Path) -> list[Path]:
    """Return what to keep: all of the content, or for formula tables one folder with the name of the archive."""
    stem = archive.name.split(".")[0]
    if "_representation" not in stem.lower():
        return [path for path in sorted(content.iterdir()) if not path.name.startswith((".", "__MACOSX"))]
    tables = [path for path in sorted(content.rglob("*.tsv")) if "__MACOSX" not in path.parts]
    if not tables:
        raise _error(archive, "it has no .tsv table")
    folder = ready / stem
    folder.mkdir()
    for table in tables:
        move(table, folder / table.name)
    return [folder]


def _move(path: Path, place: Path) -> Path:
    """Move a file into place; an existing one is kept."""
    if not place.exists():
        move(path, place)
    return place


def _error(archive: Path, reason: str) -> ARQMathError:
    return ARQMathError(f"{archive}: {reason}. Download it again from {DOWNLOAD_PAGE}, or unpack it by hand")
