"""Helpers of all rooms; imports none of them.

::

    types                    names that several rooms share
    errors                   the base of all errors; one is its fields and a template
      extras                 optional packages, imported where they are used
      parameters             objects that are their parameters, with options that are checked when set
        frames               DataFrames: kinds, one row a query, columns of objects, empty results
          transformers       the base classes of the stages of a pipeline
    signatures               real parameters in the help of classes and of methods that construct
    processes, threads       work in several processes, or kept on one thread
    interrupts, progress     how a command ends, and what it shows until then
    json_text, listwise      JSON from outside; weights of a linear score
"""
