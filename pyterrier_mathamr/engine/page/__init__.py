"""The page of ``mathamr serve``.

::

    browser ──/api/…──▶ server   checks and limits; guard: headers, the name it was called by; connections: slow ones
                          └──▶ answers   engine ──▶ plain values and safe HTML; explaining: why a post was found
            ◀──static──── static   one page, no framework, one font
"""

from .answers import SYSTEMS, Answers
from .server import make_app, serve_page

__all__ = ["SYSTEMS", "Answers", "make_app", "serve_page"]
