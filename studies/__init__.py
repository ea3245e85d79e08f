"""The research behind the figures of ``docs/``: studies of models and systems. Not part of the installed package.

::

    study       a study as data: its conditions, seeds and baselines
    registry    all studies by name; run_study: train, measure, report
    artifacts   artifacts in a work folder that only studies make
    tables      results of runs: means, tests, remarks on random orders

    models/     ways to train MathAMR+: the paper's tables, ablations, best models; runs in processes or on a cluster
    answers/    systems of Task 1, each a pipeline and the artifacts that it needs
    formulas/   systems of Task 2, known items, In+Out models
    protocol/   settings tuned on some topics and tested on others; other kinds of text; all systems and their costs

Run one in a clone by ``python -m studies NAME FOLDER``; ``--list`` names them. A work folder is shared with
``mathamr experiment``.
"""
