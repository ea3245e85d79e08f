"""How every artifact of the package is stored; this layer knows no mathematics.

::

    kind ── declares ──▶ the arrays of a part: dtypes, shapes; its files; how parts are merged
      │
    rows ──job──▶ finished parts next to the artifact ──commit──▶ the artifact, in one step (manifest)
                      │ killed: the next job with the same             │
                      │ fingerprint and rows continues                 ▼
                      └──────────────▶                     snapshot: its parts by memory map, ids, deleted rows

    artifact    the base of all artifacts; deleting, compacting, verifying; artifacts that consist of others
    job         one writer, its unfinished work and publication, also of parts that several workers write
    manifest    the declaration of a kind, and pt_meta.json
    parts, ids  one part, several as one, their ids
    files       durable files and arrays, locks
    cache       values by key in one SQLite file

    sqlite      artifacts of one SQLite file       } separate faces,
    saved       small JSON files of weights        } imported by name

Three promises hold for every artifact. At every instant a path holds the complete old artifact or the complete new one.
A job never uses another job's unfinished work. A change on disk since the artifact was written is detected: on opening
if it could do harm, and in every byte by ``verify()``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
