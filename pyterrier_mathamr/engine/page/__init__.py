"""The page of ``mathamr serve``.

::

    browser ──/api/…──▶ server   checks and limits; guard: headers, the name it was called by; connections: slow ones
                          └──▶ workers   processes that are ended when a request takes too long
                                 └──▶ answers   engine ──▶ plain values and safe HTML; explaining: why a post was found
            ◀──static──── static   one page, no framework, one font
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
