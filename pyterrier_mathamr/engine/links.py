"""Links from results to where they were read: a template that the person who searches gives.

::

    vscode://file/{path}:{line}      obsidian://open?path={path}      file://{path}      https://wiki.example.org/{file}#L{line}
    https://leanprover-community.github.io/mathlib4_docs/find/?pattern={name}#doc
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.posts import Document, Origin

SCHEMES = (
    "file", "http", "https", "vscode", "vscode-insiders", "vscodium", "cursor", "zed", "obsidian", "logseq", "joplin",
    "emacs", "org-protocol", "editor", "subl", "txmt", "mvim", "nvim", "idea", "pycharm", "texstudio",
)  # fmt: skip
"""The allowed beginnings of a link; a browser runs some others, such as ``javascript:``."""
_FIELDS = ("path", "file", "line", "name", "docno")
_FIELD = re.compile(r"\{([^{}]*)\}")


class LinkTemplate:
    """A template of links.

    Args:
        template: an address with the fields ``{path}`` (absolute), ``{file}`` (in the folder that was indexed),
            ``{line}``, ``{name}`` (the part of the docno after ``#``, such as the name of a declaration) and
            ``{docno}``, whose values are percent-encoded.

    Raises:
        ConfigError: it begins with none of the schemes, or has another field.
    """

    def __init__(self, template: str) -> None:
        scheme, colon, _ = template.partition(":")
        names = _FIELD.findall(template)
        bare = _FIELD.sub("", template)
        if not colon or scheme.lower() not in SCHEMES:
            raise ConfigError("link", template, f"an address that begins with {', '.join(SCHEMES)} and a colon")
        if set(names) - set(_FIELDS) or "{" in bare or "}" in bare or not names:
            raise ConfigError("link", template, f"one with the fields {', '.join(f'{{{name}}}' for name in _FIELDS)}")
        if any(ord(character) <= 32 for character in template):
            raise ConfigError("link", template, "one without blanks; write %20")
        self._template, self._names = template, names

    def link(self, document: Document) -> str:
        """Return the link to a post; empty for one without a file or name, if the template needs it."""
        origin = document.origin
        name = document.docno.partition("#")[2] if origin.kind else ""
        if (not origin.kind and set(self._names) != {"docno"}) or ("name" in self._names and not name):
            return ""
        values = {
            "path": source_path(origin),
            "file": origin.file,
            "line": str(max(origin.line, 1)),
            "name": name,
            "docno": document.docno,
        }

        def value(found: re.Match[str]) -> str:
            before = self._template[: found.start()]
            text = values[found[1]]
            if before.endswith("/") and (not before.endswith("://") or before.endswith(":///")):
                text = text.removeprefix("/")  # file:///{path} is file://{path}
            return quote(text, safe="" if "?" in before or "#" in before else "/:")

        return _FIELD.sub(value, self._template)


def source_path(origin: Origin) -> str:
    """Return the absolute path of the file in which a post was read; empty for a record."""
    return (source_folder(origin) / origin.file).as_posix() if origin.kind else ""


def source_folder(origin: Origin) -> Path:
    """Return the folder of a source: the source itself, or the folder of a single file."""
    root = Path(origin.root)
    return root.parent if root.is_file() else root
