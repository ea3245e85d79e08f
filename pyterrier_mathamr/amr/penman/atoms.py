r"""The atoms of Penman notation: symbols, roles, and labels in quotes.

In quotes, ``\\`` is a backslash, ``\"`` a quotation mark and ``\u000a`` a control character; any other backslash is
literal. A label is quoted if it is no symbol, or would be read as a variable or a comment.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# Line separators and control characters would end or hide part of a line; lone surrogates cannot be written as UTF-8.
_UNWRITABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_SYMBOL = re.compile(rf'[^ "()/:~#{_UNWRITABLE}][^ "()/:~{_UNWRITABLE}]*')
_ROLE = re.compile(rf':[^ "()/:~{_UNWRITABLE}]*')
_ESCAPED = re.compile(rf'[\\"{_UNWRITABLE}]')
_ESCAPE = re.compile(r'\\(?:([\\"])|u([0-9a-f]{4}))')


def is_symbol(text: str) -> bool:
    """Return whether a text is an atom (or variable) without quotes."""
    return _SYMBOL.fullmatch(text) is not None


def is_role(text: str) -> bool:
    """Return whether a text can be the role of an edge."""
    return _ROLE.fullmatch(text) is not None and text != ":instance"


def spell(label: str, variables: Collection[str] = ()) -> str:
    """Write a label as an atom."""
    if not label or (is_symbol(label) and label not in variables):
        return label
    return f'"{_ESCAPED.sub(_escape, label)}"'


def atom_value(atom: str) -> str:
    """Read an atom: the inverse of `spell`."""
    return _ESCAPE.sub(_unescape, atom[1:-1]) if atom.startswith('"') else atom


def _unescape(match: re.Match[str]) -> str:
    return match[1] or chr(int(match[2], 16))


def _escape(match: re.Match[str]) -> str:
    return "\\" + match[0] if match[0] in '\\"' else f"\\u{ord(match[0]):04x}"
