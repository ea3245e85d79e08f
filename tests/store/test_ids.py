"""Ids come back as they went in, whatever they are made of, at the cost of their length."""

import tracemalloc

import npids
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyterrier_mathamr.store import DamagedError
from pyterrier_mathamr.store import ids as ids_module
from pyterrier_mathamr.store.ids import IdTable, id_keys

ODD = ["é", "è", "007", "7", "", "A" * 300, "\0", "a\0", "\ud800", "100%", "9" * 30, "\x1f-", " ", "a\n"]
IDS = st.one_of(
    st.text(st.characters(codec=None), max_size=30),
    st.integers(0, 10**20).map(str),
    st.integers(0, 999).map("{:03d}".format),
    st.integers(0, 99).map("a%{}".format),
    st.uuids().map(str),
    st.binary(max_size=16).map(bytes.hex),
    st.sampled_from(ODD),
)


ODD_ARRAYS = ("odd_ids", "odd_offsets", "odd_rows")


def table(folder, ids) -> IdTable:
    arrays = IdTable.write(folder / "ids", ids)
    return IdTable(folder / "ids", len(ids), arrays)


@settings(max_examples=40)
@given(st.lists(IDS, unique=True, max_size=40), st.lists(IDS, max_size=10))
def test_ids_come_back_and_are_found(tmp_path_factory, ids, sought) -> None:
    made = table(tmp_path_factory.mktemp("ids"), ids)
    assert list(made) == ids
    assert made.rows(id_keys(ids)).tolist() == list(range(len(ids)))
    assert made.rows(id_keys(sought)).tolist() == [ids.index(name) if name in ids else -1 for name in sought]
    order = np.arange(len(ids))[::-1]
    assert made.texts(order) == ids[::-1]


MANY = {
    "numbers of three digits": [f"{i:03d}" for i in range(5, 8)],
    "many numbers": [str(i) for i in range(100, 5100)],
    "numbers with leading zeros": [f"{i:04d}" for i in range(3000)],
    "numbers after a letter": [f"D{i}" for i in range(1, 1001)],
    "numbers of eight and of six digits": [str(10 ** (7 - i % 2 * 2) + i) for i in range(770)],
    "two characters each": [f"{a}{b}" for a in "abcdefghijklmnopqr" for b in "ghijklmnopqrstuvwx"],
    "digests of two lengths": [f"{i:0{32 - i % 2 * 16}x}" for i in range(1, 600)],
}


@pytest.mark.parametrize("name", MANY)
def test_many_ids_of_one_form_and_then_of_another_come_back(tmp_path, name) -> None:
    ids = MANY[name]
    made = table(tmp_path, ids)
    assert list(made) == ids
    assert made.rows(id_keys(ids)).tolist() == list(range(len(ids)))
    assert made.rows(id_keys([f"{ids[-1]}9", f"0{ids[0]}"])).tolist() == [-1, -1]


def test_a_long_id_costs_its_length(tmp_path) -> None:
    ids = [f"d{i}" for i in range(5000)]
    ids[17] = "x" * 20_000
    tracemalloc.start()
    made = table(tmp_path, ids)
    assert list(made) == ids
    assert made.rows(id_keys(ids)).tolist() == list(range(5000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000  # padded to the longest they would take 400 MB
    assert (tmp_path / "ids").stat().st_size < 400_000


def test_ids_of_one_hash_are_distinguished_and_in_order_on_every_processor(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ids_module, "hashes_of", lambda names: np.full(len(names), 7, dtype=np.uint32))
    ids_module.write_id_file(tmp_path / "file", [f"q{i}" for i in range(3000)])
    assert np.frombuffer((tmp_path / "file").read_bytes()[-12_000:], "<u4").tolist() == list(range(3000))
    names = ["a", "b", "é", "c" * 40]
    made = table(tmp_path, names)
    assert made.rows(id_keys(["c" * 40, "d", "b", "é", "a"])).tolist() == [3, -1, 1, 2, 0]
    assert made.texts(np.arange(4)) == names


@pytest.mark.parametrize("form", ["{}", "fcla-{:x}-proof"])
def test_the_file_is_that_of_npids_whatever_is_kept_in_memory(tmp_path, monkeypatch, form) -> None:
    names = [form.format(7 * i) for i in range(3000)]
    with npids.Lookup.builder(str(tmp_path / "theirs")) as builder:
        builder.formats = builder.seeded_formats = {"fixedbytes": builder.formats["fixedbytes"]}
        for name in names:
            builder.add(name)
    monkeypatch.setattr(ids_module, "_BLOCK", 100)
    monkeypatch.setattr(ids_module, "_MAPPED", 0)
    ids_module.write_id_file(tmp_path / "ours", names)
    mine, of_npids = ((tmp_path / name).read_bytes() for name in ("ours", "theirs"))
    assert mine[: -4 * len(names)] == of_npids[: -4 * len(names)]  # the rest is rows, in any order where hashes agree
    assert sorted(np.frombuffer(mine[-4 * len(names) :], "<u4")) == list(range(len(names)))
    ours, theirs = ids_module.IdFile(tmp_path / "ours"), npids.Lookup(str(tmp_path / "ours"))
    rows, keys = np.arange(3000)[::-1], id_keys(names)
    assert ours.ids(rows).tolist() == theirs.fwd.lookup(rows, as_bytes=True).tolist()
    assert ours.rows(keys.names, keys.hashes).tolist() == theirs.inv.lookup(keys.names).tolist() == sorted(rows)


def test_memory_does_not_grow_with_the_blocks_of_the_file(tmp_path) -> None:
    made = table(tmp_path, list(map(str, range(1_000_000, 1_100_000))))  # a hundred blocks
    tracemalloc.start()
    made = IdTable(tmp_path / "ids", 100_000, {name: np.zeros(0, np.int64) for name in ODD_ARRAYS})
    for start in range(0, 100_000, 1000):
        some = made.texts(np.arange(start, start + 1000))
        assert made.rows(id_keys(some))[0] == start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000  # the file has 1.6 MB, all ids as texts would take 7 MB


def test_a_file_of_another_form_or_whose_blocks_go_round_is_damaged_and_not_read_for_ever(tmp_path) -> None:
    npids.Lookup.build(list(map(str, range(5000))), str(tmp_path / "other"), return_self=False)
    ids_module.write_id_file(tmp_path / "ids", ["a", "b"])
    data = bytearray((tmp_path / "ids").read_bytes())
    data[4:12] = bytes(8)  # the next block is the first
    (tmp_path / "ids").write_bytes(data)
    for name, message in (("other", "intsequence"), ("ids", "go round")):
        with pytest.raises(DamagedError, match=message):
            ids_module.IdFile(tmp_path / name)
