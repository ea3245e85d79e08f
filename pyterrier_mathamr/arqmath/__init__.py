"""ARQMath: the release, its datasets, measures and the known items.

    files/            each official file to records: posts, topics, judgments, pairs and links, runs, answers
      │
    collection        a folder of the release: each file found by its name, and read when asked for
      │
      ├── release/    the folder as a whole: inventory, unpacking, checks, statistics
      ├── datasets/   ``irds:arqmath/…`` for ir_datasets and PyTerrier
      ├── known_items questions as topics, their own answers as judgments
      └── task2       rankings of formulas to rankings of visually distinct formulas
    measures          nDCG', MAP', P'@10, Bpref; AR' and P'@1 of Task 3

Names are imported when they are first used. Importing the room itself only installs a finder that registers the
datasets once ir_datasets is imported.
"""

import lazy_loader

from .datasets.autoregister import register_when_needed

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register_when_needed()
