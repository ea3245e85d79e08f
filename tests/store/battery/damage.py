"""Flipped bits, and files that are truncated, removed or exchanged with another artifact's."""

from __future__ import annotations

import os
import random
import resource
import shutil
from functools import partial
from pathlib import Path

from children import Tally, canonical, in_child
from subjects import Subject


def _files(path: Path) -> list[Path]:
    return sorted(file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def damage(subject: Subject, flips: int, most_files: int, seed: int = 0) -> dict[str, Tally]:
    """Flip bits, and truncate and remove ``most_files`` files at most; read without and with ``verify()``.

    Without it a flip may be read over, but never end in a hang, a crash or an error without a name; ``verify()`` finds
    each.
    """
    chance = random.Random(seed)
    tallies = {"flips, read": Tally(), "flips, verified": Tally(), "truncated": Tally(), "removed": Tally()}
    base = "marked" if "compact" in subject.actions else "old"
    wanted = subject.state(subject.fresh(base))
    files = [file.relative_to(subject.trial) for file in _files(subject.trial / "it")]
    sizes = [max(1, (subject.trial / file).stat().st_size) for file in files]
    for number in range(flips):
        path = subject.fresh(base)
        name = chance.choice(files) if number % 2 else chance.choices(files, sizes)[0]
        data = bytearray((subject.trial / name).read_bytes())
        if not data:
            continue
        where, bit = chance.randrange(len(data)), chance.randrange(8)
        data[where] ^= 1 << bit
        (subject.trial / name).write_bytes(data)
        what = f"{name}, byte {where} bit {bit}"
        tallies["flips, read"].add(_read(subject, path, wanted, {"wrong": "unnoticed"}), what)
        checked = in_child(partial(_verify, subject, path), before=_bounded)
        outcome = "silently wrong" if checked.how == "value" else "named" if checked.how == "named" else "unnamed"
        tallies["flips, verified"].add(outcome, f"{what}: {checked}")
    for file in _some(files, most_files, chance):
        for sort in ("truncated", "removed"):
            size = (subject.folder / "bases" / base / file).stat().st_size
            for cut in {0, size // 2, size - 1} if sort == "truncated" else {0}:
                path = subject.fresh(base)
                if sort == "removed":
                    (subject.trial / file).unlink()
                else:
                    os.truncate(subject.trial / file, cut)
                if cut != size or sort == "removed":
                    tallies[sort].add(_read(subject, path, wanted, {}), f"{file} {sort} at {cut}")
    return tallies


def _some(paths: list[Path], most: int, chance: random.Random) -> list[Path]:
    return chance.sample(paths, min(most, len(paths)))


def exchanges(subject: Subject, most: int, seed: int = 0) -> Tally:
    """Replace at most ``most`` files, and artifacts within an artifact, by those of another one.

    It may be read over, as a flip may; ``verify()`` finds each.
    """
    tally = Tally()
    other = subject.folder / "other"
    answer = in_child(partial(subject.module.build, other, range(5), "create", 1))
    assert answer.how == "value", answer
    whole = subject.fresh("old")
    members = [meta.parent for meta in whole.rglob("pt_meta.json") if meta.parent != whole]
    places = [file.relative_to(whole) for file in (*_files(whole), *members)]
    for place in _some(places, most, random.Random(seed)):
        path = subject.fresh("old")
        mine, theirs = path / place, other / place
        if not theirs.exists() or (mine.is_file() and mine.read_bytes() == theirs.read_bytes()):
            continue
        if mine.is_dir():
            shutil.rmtree(mine)
            shutil.copytree(theirs, mine)
        else:
            shutil.copyfile(theirs, mine)
        checked = in_child(partial(_verify, subject, path), before=_bounded)
        outcome = "silently wrong" if checked.how == "value" else "named" if checked.how == "named" else "unnamed"
        tally.add(outcome, f"{place} of another one: {checked}")
    return tally


def _verify(subject: Subject, path: Path) -> None:
    subject.module.open(path).verify()


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


def _read(subject: Subject, path: Path, wanted: str, allowed: dict[str, str]) -> str:
    answer = in_child(lambda: canonical(subject.module.read(path)), before=_bounded)
    if answer.how == "named":
        return "named"
    if answer.how == "value":
        return "harmless" if answer.value == wanted else allowed.get("wrong", "silently wrong")
    return "unnamed"
