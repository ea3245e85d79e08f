"""From a stream of documents to the parts of an index on disk.

::

    records {docno, doc_embs, …}
        │ entries     one entry for each document, or for each formula of it
        │ resume      which documents an interrupted job has finished
        ▼
    builder           gathers entries, 64 MB of rows for each part
        │ content     checks the values, lays out the arrays and int8 codes of a part
        │ kinds       the arrays that a part consists of, for the store
        ▼
    store.Job         writes the parts and publishes them in one step

    indexers          the two PyTerrier indexers that run this
    spreading         the same over an executor: parts are planned, encoded and written by workers
"""
