"""Threads: which answers a question has, and what the collection says of them.

::

    posts ── records ──▶ indexer ──▶ sqlite_file ◀── thread_store: ThreadStore
                                                       │
              transformers   answers, questions, metadata, best answers of rankings
              texts          an answer with its question in front; the text of any post
"""

from __future__ import annotations

from .indexer import ThreadStoreIndexer as ThreadStoreIndexer
from .records import ThreadPost as ThreadPost
from .records import ThreadPostError as ThreadPostError
from .records import tags_of as tags_of
from .texts import ThreadTextLoader as ThreadTextLoader
from .texts import WithQuestion as WithQuestion
from .texts import with_question as with_question
from .thread_store import ThreadStore as ThreadStore
from .transformers import BestAnswer as BestAnswer
from .transformers import ThreadAnswers as ThreadAnswers
from .transformers import ThreadMetadata as ThreadMetadata
from .transformers import ThreadQuestions as ThreadQuestions
