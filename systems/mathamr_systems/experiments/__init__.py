"""Experiments on a whole collection: build, search, measure, report.

::

    negatives                         wrong answers that are hard to distinguish from right ones, to train with
    stages ──▶ workdir                the artifacts in a work folder, each made once
    measuring                         rankings to measures, tests and random orders
                 │
    systems      a system: a name, and how its pipeline is made; the ways to search with MathAMR+
                 │
    preparing ──▶ task1, task2        run_arqmath, Tasks 1 to 3: MathAMR+, a baseline and any other systems
                    └─▶ ntcir12       run_ntcir12: the formula systems of Task 2 on the formulas of Wikipedia
    choosing ──▶ beir                 run_beir: settings are tuned on some topics and tested on others
    mteb_search                       pipelines as search models of MTEB
                 │
    report       tables, notes, costs, versions; published figures separate from them

The studies behind the figures of the documentation are in ``studies/`` of the repository, which imports this.

More than a third of this distribution makes a run resumable and its report complete: artifacts, tests, costs, versions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
