"""A JSON object with a field that is missing or has another type, for readers that trust none."""

import copy
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

ODD_VALUES = [None, -1, 1.5, 10**400, float("nan"), [], [None], {}, {"a": None}, "", "../../outside", True]


def _fields(value: Any, lists: bool, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if lists and isinstance(value, list) else ()
    for name, own in inner:
        yield (*way, name)
        yield from _fields(own, lists, (*way, name))


def changed_objects(content: dict[str, Any], *always: object, odd: int, lists: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the object without each of its fields, with some values for each, and with so many odd ones.

    The fields within ``lists`` are changed, too.
    """
    values = cycle(ODD_VALUES)
    for *outer, last in _fields(content, lists):
        for value in (_fields, *always, *islice(values, odd)):  # the first means no value
            changed = copy.deepcopy(content)
            place: Any = changed
            for name in outer:
                place = place[name]
            if value is _fields:
                del place[last]
            else:
                place[last] = value
            yield changed
