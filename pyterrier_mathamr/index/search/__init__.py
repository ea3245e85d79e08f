"""From query embeddings to the best documents: candidates, exact scores, ranking.

::

    rows of queries (``QueryBatch``)
        ▼
    candidates, a superset of the top k of each query                       numbers of documents
        │ folder         by a scan of all documents or by HNSW graphs
        │   maxsim          the scan in float32, and its error bound
        │   int8            the scan of codes of 8 or 4 bits by torch, on CPU threads or a GPU
        │   compiled        the same by a compiled function, where there is llvmlite
        ▼
    maxsim               exact scores in float64 (``model.exact_maxsim``), best k, ties by docno      Hits
"""
