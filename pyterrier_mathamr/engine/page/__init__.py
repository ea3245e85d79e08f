"""The page of ``mathamr serve``.

::

    browser ──/api/…──▶ server   checks, limits, headers
                          └──▶ answers   engine ──▶ plain values and safe HTML
            ◀──static──── static   one page, no framework, one font
"""

from .answers import SYSTEMS, Answers
from .server import make_app, serve_page

__all__ = ["SYSTEMS", "Answers", "make_app", "serve_page"]
