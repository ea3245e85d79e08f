"""What another distribution of systems may use of this one, beside the names that every user sees.

Like the public names, these change only with a note in the changelog; all other modules may change at any time. The
distribution ``pyterrier-mathamr-systems`` uses nothing else, so it shows how each is used. Names are imported when they
are first used: a system without vectors loads no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("pyterrier_mathamr", __file__)
