"""Posts and queries to graphs.

::

    row of a frame ──columns──▶ MathPost ──from_posts──▶ MathAMRGraph
                                    parse, find the trees, attach them

    transformer  GraphBuilder: the rows of a DataFrame, or of an indexing pipeline
    parallel     build_store: documents to a GraphStore, in several processes
    on_devices   neural parsers on a cluster, each on the device of its worker
"""
