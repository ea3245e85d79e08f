"""Graphs on disk, by docno or qid.

::

    frame ──transformers (indexer)──▶ records ──▶ graph_store: GraphStore ──transformers (loader)──▶ frame
    Penman file ──penman_files──▶ import_penman ──▶ records
"""
