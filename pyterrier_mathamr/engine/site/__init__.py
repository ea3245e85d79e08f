"""A search by words and formulas in any folder of HTML pages, without a server: `mathamr site`.

::

    writing  HTML ──▶ sections, each with the id that leads to it ──▶ files: terms of formulas, words, texts
             the tables of ``formula.tex`` ──▶ symbols.js
    static   the page: latex and grammar read a formula, terms and matching find it, search adds words
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
