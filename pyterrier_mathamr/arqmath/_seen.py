"""The ids seen so far, at a bit for each."""

from __future__ import annotations


class SeenIds:
    """A set of ids that stays small: whole numbers of at most 8 digits take a bit each (12 MiB at most).

    Other ids take a set's entry. The 2.4 million posts of the release take half a megabyte.
    """

    def __init__(self) -> None:
        self._bits = bytearray()
        self._others: set[str] = set()

    def add(self, item: str) -> bool:
        """Put an id in; returns whether it is new."""
        if item in self:
            return False
        place = _place(item)
        if place is None:
            self._others.add(item)
        else:
            byte, bit = divmod(place, 8)
            if byte >= len(self._bits):
                self._bits.extend(bytes(byte + 1 - len(self._bits)))
            self._bits[byte] |= 1 << bit
        return True

    def __contains__(self, item: str) -> bool:
        place = _place(item)
        if place is None:
            return item in self._others
        byte, bit = divmod(place, 8)
        return byte < len(self._bits) and bool(self._bits[byte] >> bit & 1)

    def __bool__(self) -> bool:
        return bool(self._bits or self._others)


def _place(item: str) -> int | None:
    """Return the id's bit, or ``None`` for one that is not a number written as Python writes it."""
    if not item.isascii() or not item.isdigit() or len(item) > 8 or (item[0] == "0" and item != "0"):
        return None
    return int(item)
