"""How every artifact of the package is stored; this room knows no mathematics.

::

    kind ── declares ──▶ the arrays of a part: dtypes, shapes; its files; how parts are merged
      │
    rows ──jobs/──▶ finished parts/ beside the artifact ──commit──▶ the artifact, in one step (manifest)
                      │ killed: the next job with the same             │
                      │ fingerprint and rows continues                 ▼
                      └──────────────▶                     snapshot: its parts/ by memory map, ids, deleted rows

    artifact    the base of all artifacts; deleting, compacting, verifying
    compound    artifacts that consist of others
    sqlite      the base of those of one SQLite file
    files       durable files and arrays
    cache       values by key in one SQLite file

Three promises hold for every artifact. At every instant a path holds the complete old artifact or the complete new one.
A job never uses another job's unfinished work. A change on disk since the artifact was written is detected: on opening
where it could do harm, and every byte by ``verify()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from .artifact import StoredArtifact as StoredArtifact
    from .artifact import compact as compact
    from .artifact import faults as faults
    from .cache import UNREADABLE as UNREADABLE
    from .cache import Cache as Cache
    from .compound import Compound as Compound
    from .compound import check_member as check_member
    from .compound import is_identity as is_identity
    from .compound import member_faults as member_faults
    from .errors import DamagedCacheError as DamagedCacheError
    from .errors import DamagedError as DamagedError
    from .errors import DuplicateIdError as DuplicateIdError
    from .errors import ExistsError as ExistsError
    from .errors import FormatError as FormatError
    from .errors import LockedError as LockedError
    from .errors import NotBuiltError as NotBuiltError
    from .errors import OtherArtifactError as OtherArtifactError
    from .errors import StoreError as StoreError
    from .errors import UnfinishedJobError as UnfinishedJobError
    from .errors import UnknownIdError as UnknownIdError
    from .errors import WriteError as WriteError
    from .files import Array as Array
    from .files import file_sum as file_sum
    from .files import map_arrays as map_arrays
    from .files import move as move
    from .files import parse_json as parse_json
    from .files import replace_file as replace_file
    from .files import replacing as replacing
    from .files import settled as settled
    from .files import sync_folder as sync_folder
    from .files import write_arrays as write_arrays
    from .files import write_file as write_file
    from .files import writing as writing
    from .jobs.job import Job as Job
    from .jobs.job import open_job as open_job
    from .jobs.lock import new_folder as new_folder
    from .jobs.lock import writer_lock as writer_lock
    from .jobs.planned import begin_planned as begin_planned
    from .jobs.planned import planned_part as planned_part
    from .jobs.planned import write_planned as write_planned
    from .jobs.sqlite_job import check_integrity as check_integrity
    from .jobs.sqlite_job import take_up as take_up
    from .jobs.sqlite_job import unchanged as unchanged
    from .jobs.unfinished import changed_row as changed_row
    from .jobs.unfinished import differences as differences
    from .jobs.unfinished import file_fingerprint as file_fingerprint
    from .jobs.unfinished import job_folder as job_folder
    from .jobs.unfinished import row_fingerprint as row_fingerprint
    from .jobs.unfinished import unfinished_parts as unfinished_parts
    from .kind import META as META
    from .kind import PACKAGE as PACKAGE
    from .kind import Content as Content
    from .kind import Field as Field
    from .kind import Kind as Kind
    from .kind import Mode as Mode
    from .manifest import Manifest as Manifest
    from .manifest import PartMeta as PartMeta
    from .manifest import check_kind as check_kind
    from .manifest import detail as detail
    from .manifest import read_manifest as read_manifest
    from .manifest import read_signed as read_signed
    from .manifest import signed as signed
    from .parts.ids import Rows as Rows
    from .parts.merging import LiveIds as LiveIds
    from .parts.merging import merge_ragged as merge_ragged
    from .parts.merging import merged as merged
    from .parts.merging import ranges as ranges
    from .parts.part import Part as Part
    from .parts.scratch import Appended as Appended
    from .parts.scratch import scratch_array as scratch_array
    from .snapshot import Parts as Parts
    from .snapshot import Snapshot as Snapshot
    from .snapshot import signature as signature
    from .sqlite import SqliteArtifact as SqliteArtifact
    from .sqlite import SqliteFile as SqliteFile
    from .sqlite import SqliteId as SqliteId
    from .sqlite import id_text as id_text
    from .sqlite import in_batches as in_batches
    from .sqlite import optional_number as optional_number
    from .sqlite import sqlite_id as sqlite_id

__getattr__, __dir__, __all__ = lazy_names(__name__)
