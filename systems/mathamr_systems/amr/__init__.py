"""Neural AMR parsers in other interpreters, by the entry points ``mathamr_parsers`` of pyterrier-mathamr.

::

    texts ──parsers──▶ workers ──▶ serve.py in the parser's interpreter        doctor: what is missing there
"""

from __future__ import annotations

from .doctor import examine as examine
from .parsers import AmrlibParser as AmrlibParser
from .parsers import TransitionAmrParser as TransitionAmrParser
from .workers import WorkerLimits as WorkerLimits
