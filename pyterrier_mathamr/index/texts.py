"""Many short strings as two arrays, and the hashes by which a docno is found."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


def pack_texts(texts: Sequence[str]) -> tuple[Bytes, Offsets]:
    """Lay strings end to end.

    Args:
        texts: ``m`` strings of any Unicode; lone surrogates are kept.

    Returns:
        uint8 ``[b]``, the UTF-8 bytes end to end, and int64 ``[m + 1]``, where each begins and the last ends.
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_texts(data: Bytes, offsets: Offsets, indices: Iterable[int]) -> list[str]:
    """Read some of the strings that :func:`pack_texts` laid end to end.

    Args:
        data: uint8 ``[b]``.
        offsets: int64 ``[m + 1]``.
        indices: which strings, each in ``0 … m - 1``.
    """
    wanted = np.fromiter(indices, dtype=np.int64)
    view = data.data
    bounds = zip(offsets[wanted].tolist(), offsets[wanted + 1].tolist(), strict=True)
    return [str(view[start:end], "utf-8", "surrogatepass") for start, end in bounds]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """The 64-bit BLAKE2b hash of each string: the same on every machine, unlike Python's own.

    Returns:
        uint64 ``[m]``.
    """
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64, copy=False)
