"""Looking for damage in the files of a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyterrier_mathamr._common.errors import MathAMRError
from pyterrier_mathamr.store import StoreError, file_sum, parse_json, read_signed

from .errors import ModelFileError
from .storage import CONFIG, VOCABULARY, WEIGHTS, read_manifest, read_vocabulary

_KEYS = {"format", "config", "vocabulary", "weights"}
_SIGNED = {"vocabulary_file", "checksum"}  # a model of the first release has neither


def model_faults(folder: Path) -> Iterator[MathAMRError]:
    """Read a model's files and compare every checksum; give what is wrong, nothing where all is well.

    Args:
        folder: what ``MathAMR.save`` wrote.
    """
    try:
        manifest = read_manifest(folder)
        content = parse_json((folder / CONFIG).read_bytes(), folder / CONFIG)
        if set(content) - _KEYS:
            content = read_signed(folder / CONFIG)
        if set(content) not in (_KEYS, _KEYS | _SIGNED - {"checksum"}):
            raise ModelFileError(folder / CONFIG, "a key is missing or unknown")
    except (MathAMRError, OSError) as error:
        yield _named(error, folder / CONFIG)
        return
    for name, wanted in ((WEIGHTS, manifest.weights), (VOCABULARY, content.get("vocabulary_file"))):
        try:
            if wanted is not None and file_sum(folder / name).sha256 != wanted:
                yield ModelFileError(folder / name, "its content was changed since it was written")
            elif name == VOCABULARY:
                read_vocabulary(folder, manifest)
        except (MathAMRError, OSError) as error:
            yield _named(error, folder / name)


def _named(error: MathAMRError | OSError, path: Path) -> MathAMRError:
    """Give an error of the system the name of the file."""
    if isinstance(error, ModelFileError):
        return error
    reason = error.reason if isinstance(error, StoreError) else str(error)
    return ModelFileError(path, reason)
