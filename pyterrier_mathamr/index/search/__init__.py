"""From query embeddings to the best documents: candidates, exact scores, ranking.

::

    frame of queries
        │ queries        check and stack the rows of all queries            QueryBatch
        ▼
    candidates, a superset of the top k of each query                       numbers of documents
        │ exact          scan of all documents: proven to contain the top k
        │   maxsim          the scan in float32, and its error bound
        │   int8_scan       the scan of int8 codes on CPU threads or a GPU
        │   int8_scoring       its scores by torch
        │   compiled_scan      its scores by compiled_code, where there is llvmlite
        │   int8_coding     rows and queries as int8, and the error bound
        │   int8_product    the integer matrix product, tested before use
        │ approximate    HNSW graphs of FAISS
        ▼
    ranking              exact scores in float64 (``model.exact_maxsim``), best k, ties by docno      Hits
"""
