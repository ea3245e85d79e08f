"""The indexes in Qdrant: the methods of those in a folder over a server, a cluster, or Qdrant's local mode.

::

    index          QdrantIndex, QdrantFormulaIndex
      │ transformers   retrievers and indexers
      │   upload       entries → points, visible in one step
      │   journal      what an interrupted upload has stored, and which may go on with it
      │   search       lists of Qdrant → proven candidates → exact ranking
      │ snapshot       the state of a collection as opened: vectors by request
      ▼
    collection     points, metadata, and the alias of the two collections behind a name
      ▼
    connection     requests with retries
"""

from .collection import CollectionOptions
from .errors import QdrantCollectionError, QdrantError
from .index import QdrantFormulaIndex, QdrantIndex

__all__ = ["CollectionOptions", "QdrantCollectionError", "QdrantError", "QdrantFormulaIndex", "QdrantIndex"]
