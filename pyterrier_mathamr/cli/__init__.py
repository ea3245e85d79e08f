"""``mathamr``: a thin command line over the functions of the package.

::

    commands   the program and its commands ──┬── engine, demo   commands of a person's own posts, and of the sample
                                              ├── options        shared arguments and options
                                              └── group          errors, warnings and signals as one line

Every error that a user can fix is a ``MathAMRError``, shown as one line with exit code 1; anything else is a fault of
the package and keeps its traceback.
"""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
