"""Helpers of all rooms; imports none of them.

::

    types                    names that several rooms share
    errors                   the base of all errors; one is its fields and a template
      problems               warnings about single posts, gathered and told once
      extras                 optional packages, imported where they are used
      parameters             objects that are their parameters, with options that are checked when set
        frames               DataFrames: kinds, one row a query, columns of objects, empty results
          transformers       the base classes of the stages of a pipeline
    lazy                     public names that are imported when they are first used
    signatures               real parameters in the help of classes and of methods that construct
    running/                 work in several processes, or kept on one thread; how a command ends
    progress, counts         what a long call shows until then, and what an artifact holds
    json_text, listwise      JSON from outside; weights of a linear score
"""
