"""Helpers of all layers; imports none of them.

::

    types                    names that several layers share
    errors                   the base of all errors; optional packages, imported where they are used
      parameters             objects that are their parameters, with options that are checked when set
        frames               DataFrames: one row a query, columns of objects, empty results
      feedback               progress bars, one warning for the faults of all posts, the contents of an artifact
        transformers         the base classes of the stages of a pipeline
    records                  JSON and compressed records from outside
    listwise                 weights of linear scores
    drawing                  SVG: canvas, colors, trees
    running/                 work in other processes, on a cluster, or kept on one thread; settings of the process

Work in other processes ends, resumes and reports its errors alike on one machine and on a cluster.
"""
