"""The page of ``mathamr serve``.

::

    browser ──/api/…──▶ server   checks and limits; guard: headers, the name it was called by; connections: slow ones
                          └──▶ workers   processes that are ended when a request takes too long
                                 └──▶ answers   engine ──▶ plain values and safe HTML; explaining: why a post was found
            ◀──static──── static   one page, no framework, one font
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from .answers import Answers as Answers
    from .server import make_app as make_app
    from .server import serve_page as serve_page
    from .workers import SYSTEMS as SYSTEMS
    from .workers import SeparateAnswers as SeparateAnswers

__getattr__, __dir__, __all__ = lazy_names(__name__)
