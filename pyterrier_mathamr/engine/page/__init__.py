"""The page of ``mathamr serve``.

::

    browser ──/api/…──▶ server   checks, limits, security headers; connections: slow clients
                          └──▶ workers   turns of greedy clients; processes that are ended when a request is too slow
                                 └──▶ answers   engine ──▶ plain values and safe HTML
            ◀──static──── static   one page, no framework, one font
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
