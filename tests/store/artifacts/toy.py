"""The smallest artifact: ragged rows of numbers by id."""

from pathlib import Path

import numpy as np
from artifact_modules import Artifact

from pyterrier_mathamr.store import Content, Field, Kind, StoredArtifact, merge_ragged, row_fingerprint


class Toy(StoredArtifact):
    """Rows by id."""

    KIND = Kind(
        "toy",
        3,
        "build(path)",
        (
            Field("rows", "float32", "r d"),
            Field("offsets", "int64", "m+1", cuts="r"),
            Field("sources", "uint64", "m"),
        ),
        merge=merge_ragged,
    )


class ToyArtifact(Artifact, name="toy"):
    Toy = Toy

    def open(self, path: Path) -> Toy:
        return Toy(path)

    def content(self, ids: list[str], seed: int = 0) -> Content:
        """Rows that depend only on the id and the seed."""
        rows = [
            np.random.default_rng([seed, *name.encode("utf-8", "surrogatepass")]).random((1 + len(name) % 3, 4), "f4")
            for name in ids
        ]
        sources = np.array([row_fingerprint({"id": name, "seed": seed}) for name in ids], dtype=np.uint64)
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return Content(ids, {"rows": np.concatenate(rows), "offsets": offsets, "sources": sources})

    def build(self, path: Path, numbers: range, mode: str = "create", seed: int = 0) -> None:
        ids = [f"d{i}" for i in numbers]
        with Toy(path).job(mode, {"options": "none"}) as job:  # type: ignore[arg-type]
            for name, row in zip(ids, job.rows_done(ids).tolist(), strict=True):
                for part, _, local in job.done.by_part(np.array([row] if row >= 0 else [], dtype=np.int64)):
                    if part["sources"][local[0]] != row_fingerprint({"id": name, "seed": seed}):
                        raise job.changed(name)
            new = [name for name, row in zip(ids, job.done.look_up(ids).tolist(), strict=True) if row < 0]
            for start in range(0, len(new), 2):
                job.add(self.content(new[start : start + 2], seed))
            job.commit({"made": "by a test"})

    def read(self, path: Path) -> list[object]:
        """The details, all ids in order, and all rows by id."""
        snapshot = Toy(path).snapshot()
        found = {}
        for name, row in zip(snapshot, snapshot.live, strict=True):
            assert snapshot.find([name]).tolist() == [row]
            for part, _, local in snapshot.by_part(np.array([row])):
                start, end = part["offsets"][local[0] : local[0] + 2].tolist()
                found[name] = part["rows"][start:end].round(5).tolist()
        return [snapshot.manifest.details, list(found), found]
