"""How every artifact of the package is stored; this room knows no mathematics.

::

    kind ── declares ──▶ the arrays of a part: dtypes, shapes; its files; how parts are merged (merging)
      │
    rows ──job, lock──▶ finished parts beside the artifact ──commit──▶ the artifact, in one step (manifest)
                          │ killed: the next job with the same            │
                          │ fingerprint and rows continues (unfinished)   ▼
                          └──────────────▶                    snapshot: parts by memory map (part), ids, deleted rows

    files       durable files and arrays          cache      values by key in one SQLite file
    artifact    the base of all artifacts; deleting, compacting, verifying

Three promises hold for every artifact. At every instant a path holds the complete old artifact or the complete new one.
A job never uses another job's unfinished work. A change on disk since the artifact was written is detected: on opening
where it could do harm, and every byte by ``verify()``.
"""

from .artifact import StoredArtifact, compact, delete_rows, faults
from .cache import UNREADABLE, Cache
from .errors import (
    DamagedCacheError,
    DamagedError,
    DuplicateIdError,
    ExistsError,
    FormatError,
    IdError,
    LockedError,
    NotBuiltError,
    OtherArtifactError,
    StoreError,
    UnfinishedJobError,
    UnknownIdError,
    WriteError,
)
from .files import (
    Array,
    file_sum,
    map_arrays,
    move,
    parse_json,
    replace_file,
    replacing,
    settled,
    write_arrays,
    write_file,
    writing,
)
from .ids import Rows
from .job import Job, open_job
from .kind import META, Content, Field, Kind, Mode
from .lock import new_folder, writer_lock
from .manifest import Manifest, detail, read_manifest, read_signed, signed
from .merging import live_ids, merge_ragged, merged, ranges
from .part import Part
from .snapshot import Parts, Snapshot
from .unfinished import (
    changed_row,
    differences,
    file_fingerprint,
    job_folder,
    read_job,
    row_fingerprint,
    unfinished_parts,
)

__all__ = [
    "META",
    "UNREADABLE",
    "Array",
    "Cache",
    "Content",
    "DamagedCacheError",
    "DamagedError",
    "DuplicateIdError",
    "ExistsError",
    "Field",
    "FormatError",
    "IdError",
    "Job",
    "Kind",
    "LockedError",
    "Manifest",
    "Mode",
    "NotBuiltError",
    "OtherArtifactError",
    "Part",
    "Parts",
    "Rows",
    "Snapshot",
    "StoreError",
    "StoredArtifact",
    "UnfinishedJobError",
    "UnknownIdError",
    "WriteError",
    "changed_row",
    "compact",
    "delete_rows",
    "detail",
    "differences",
    "faults",
    "file_fingerprint",
    "file_sum",
    "job_folder",
    "live_ids",
    "map_arrays",
    "merge_ragged",
    "merged",
    "move",
    "new_folder",
    "open_job",
    "parse_json",
    "ranges",
    "read_job",
    "read_manifest",
    "read_signed",
    "replace_file",
    "replacing",
    "row_fingerprint",
    "settled",
    "signed",
    "unfinished_parts",
    "write_arrays",
    "write_file",
    "writer_lock",
    "writing",
]
