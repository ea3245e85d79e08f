"""ARQMath: the release, its datasets, measures and the known items.

::

    dump, topics, runs   each official file to records: posts, pairs and links; topics, judgments; submissions
      │                  errors: tolerated faults of bad rows, reported as warnings
    collection           a folder of the release: each file found by its name (release_files), read when asked for
      ├── datasets/      ``irds:arqmath/…`` for ir_datasets and PyTerrier
      └── sources        posts and training pairs of such a folder, of a pair file, or of own posts
            └ from_sources  graphs of such posts; models trained on such pairs, and hard negatives for them
    measures             nDCG', MAP', P'@10, Bpref; AR' and P'@1 of Task 3; tables; visually distinct formulas

Names are imported when they are first used. Importing the layer itself only installs a finder that registers the
datasets once ir_datasets is imported.

Faults of rows are reported without stopping.
"""

import lazy_loader

from .datasets import register_when_needed

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

register_when_needed()
