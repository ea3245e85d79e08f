"""Helpers of all rooms; imports none of them.

::

    types                    names that several rooms share
    errors                   the base of all errors; one is its fields and a template
      extras                 optional packages, imported where they are used
      parameters             objects that are their parameters, with options that are checked when set
        columns              which columns are a query's, a document's, or an encoder's
        frames               DataFrames: kinds, one row a query, columns of objects, empty results
          transformers       the base classes of the stages of a pipeline
    lazy                     public names that are imported when they are first used
    signatures               real parameters in the help of classes and of methods that construct
    running/                 work in several processes, or kept on one thread; how a command ends
    feedback/                progress bars, warnings about posts gathered and told once, what an artifact holds
    fitting/                 weights of linear scores
    drawing/                 SVG: trees, colors
    json_text                JSON from outside
"""
