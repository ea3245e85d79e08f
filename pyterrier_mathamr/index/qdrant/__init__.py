"""The indexes in Qdrant: the methods of indexes in a folder over a server, a cluster, or Qdrant's local mode.

::

    index          QdrantIndex, QdrantFormulaIndex, their indexers; the state of a collection as opened, a backend
      │ upload       entries → points, visible in one step; the points of an interrupted upload
      ▼
    collection     points, metadata, the alias of the two collections behind a name; requests with retries
"""
