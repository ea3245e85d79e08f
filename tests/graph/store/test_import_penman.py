"""Files of graphs that others made: what is good is stored, what is bad is counted, and nothing is lost between."""

import gzip
import json
import pickle

import pytest
from graph_examples import one_sentence, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyterrier_mathamr._common.errors import MathAMRWarning
from pyterrier_mathamr.amr import decode_penman, encode_penman
from pyterrier_mathamr.graph import GraphError, GraphStore, MathAMRGraph, import_penman, penman_files
from pyterrier_mathamr.graph.structure import layout_of

pytestmark = pytest.mark.filterwarnings("ignore::pyterrier_mathamr._common.errors.MathAMRWarning")


@pytest.fixture
def read(tmp_path):
    """Store the graphs of a text or of bytes."""

    def build(content, name="graphs.amr", **options):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (tmp_path / name).write_bytes(data)
        return GraphStore(tmp_path / "graphs.mathamr").from_penman(tmp_path / name, **options)

    return build


@pytest.mark.parametrize("name", ["graphs", "graphs.amr.gz"])
def test_output_of_a_store_is_read_without_repair(read, tmp_path, name):
    written = GraphStore(tmp_path / "first.mathamr")
    written.index([{"docno": "1", "graph": whole()}, {"docno": "2", "graph": one_sentence()}])
    written.to_penman(tmp_path / name)
    store = read((tmp_path / name).read_bytes(), name)
    assert store.get_many(["1", "2"]) == written.get_many(["1", "2"])
    report = store.import_report
    assert (report.records, report.stored, report.repaired, report.refused) == (2, 2, 0, 0)
    store.to_penman(tmp_path / ("again-" + name))
    assert (tmp_path / ("again-" + name)).read_bytes() == (tmp_path / name).read_bytes()


MIXED = """\ufeffAMR release, made by hand

# ::id 1 ::date 2020
# ::snt Odd is odd.
(o / odd-01 :ARG1 (o2 / odd))

# ::id 2
(a / b :ARG0

(c / d)

# ::id 4
nothing
# ::id 5
(e / f
   :arg0 (g / h))
# ::id 6
(e / f)
(g / h)

# ::id 1
(e / f)
"""


def test_a_bad_record_is_counted_with_its_line_and_reason_and_costs_no_other(read):
    with pytest.warns(MathAMRWarning) as caught:
        store = read(MIXED)
    assert store.ids() == ["1", "2", "5", "6"]
    assert store["1"].amr.metadata == (("date", "2020"), ("snt", "Odd is odd."))
    report = store.import_report
    assert (report.records, report.stored, report.repaired, report.refused) == (9, 4, 2, 5)
    assert report.repairs == {"a closing bracket added": 1, "the case of a role": 1}
    assert report.reasons == {"an id that came before": 1, "no '# ::id'": 2, "no graph": 2}
    lines = [1, 10, 12, 19, 21]
    assert [refusal.line for refusal in report.refusals] == lines
    for line, warning in zip(lines, caught, strict=False):
        assert f"line {line}: skipped, " in str(warning.message)
    assert "9 records: 4 stored, 2 of them repaired; 5 refused" in str(caught[-1].message)
    store = read(MIXED + "\n\n# ::id 7\n(c / d)", mode="append")
    assert store.ids() == ["1", "2", "5", "6", "7"]
    assert store.import_report.reasons["an id that came before"] == 5


MATHAMR = """A.1\t"(m / multi-sentence
      :snt1 (c / come-across-21
            :arg0 (ii / i)
            :arg1 (p / problem :value ""d""))
      :snt2 (s / string-entity
            :value MATH 
 :math (O1 / interval$C-C$$ :op0(T1 / \\\\binom) :op1(N1 / 2)))))"
A.2\t(f / find-01 :arg1 (e / "x"))
"""  # noqa: W291


def test_tables_of_mathamr_are_read(read):
    store = read(MATHAMR.replace("\\\\", "\\"))
    assert store.ids() == ["A.1", "A.2"]
    assert store["A.2"].amr == decode_penman('(f / find-01 :ARG1 (e / "x"))')
    assert {"interval$C-C$$", "\\binom", "d"} <= set(store["A.1"].amr.labels)
    assert (store["A.1"].n_sentences, store.import_report.refused) == (2, 0)


def test_formulas_without_nodes_are_attached_to_the_root_and_lower_case_and_foreign_bytes_are_repaired(read):
    store = read('# ::id 1\n# ::formula_map {"FORMULA_0": "7", "FORMULA_1": "8"}\n(f / find-01 :ARG1 (f1 / FORMULA_1))')
    assert store["1"].amr.edges[-1][1] == ":math"
    assert layout_of(store["1"].amr, 2).placeholders == [2, 1]
    assert store.import_report.repairs == {"a formula without a node attached to the root": 1}
    lower = '# ::id 2\n# ::formula_map {"formula_0": "77"}\n(f / find-01 :arg1 (f2 / formula_0))'
    store = read(lower, mode="append")
    assert store["2"].formula_ids == ("77",)
    assert layout_of(store["2"].amr, 1).placeholders == [1]
    store = read(b"# ::id 3\n(a / caf\xe9)\n\n# ::id 4\n(c / \xef\xbf\xbd)", mode="append")
    assert store["3"].amr.labels == ("caf\ufffd",)
    assert store.import_report.repairs == {"bytes that are not UTF-8 replaced": 1}


@pytest.mark.parametrize("value", ["{", "[]", '{"x": 1}', "[" * 100_000, '{"FORMULA_99": 1}'])
def test_unreadable_metadata_costs_only_itself(read, value):
    keys = ("formula_map", "sentence_texts", "formula_latex")
    store = read("\n\n".join(f"# ::id {key}\n# ::{key} {value}\n(f / find-01)" for key in keys))
    assert [graph.amr for graph in store.get_many(keys)] == [decode_penman("(f / find-01)")] * 3


def test_a_compressed_file_cut_short_gives_what_was_unpacked(read):
    text = "".join(f"# ::id {i}\n(a / thing-{i * 7919})\n\n" for i in range(2000)).encode()
    store = read(gzip.compress(text)[:-1000])
    report = store.import_report
    assert 0 < len(store) < 2000
    assert len(store) in (report.records - 1, report.records - 2)
    assert any(reason.startswith("the compressed file is damaged") for reason in report.reasons)


def test_a_record_longer_than_memory_allows_is_refused_and_the_next_is_read(read, monkeypatch):
    monkeypatch.setattr(penman_files, "MAX_RECORD", 1000)
    many = "# ::id 2\n(a / b\n" + "  :x c\n" * 500 + ")\n\n"
    store = read("# ::id 1\n(a / b)\n\n" + many + "# ::id 3\n(a / " + "b" * 5000 + ")\n\n# ::id 4\n(a / b)\n")
    assert store.ids() == ["1", "4"]
    assert store.import_report.reasons == {"longer than 1,000 characters": 2}


def test_only_the_first_refusals_are_named_but_all_are_counted(read):
    with pytest.warns(MathAMRWarning) as caught:
        store = read("(a / b)\n\n" * 1000 + "# ::id 1\n(a / b)")
    assert (store.ids(), store.import_report.refused) == (["1"], 1000)
    assert len(store.import_report.refusals) == 20
    assert len(caught) == 21
    with pytest.warns(MathAMRWarning, match="0 records: 0 stored"):  # the store is empty
        assert read("", mode="overwrite").ids() == []


GOOD = st.integers(0, 10**6).map(lambda number: f"# ::id good-{number}\n(a / thing-{number} :quant {number})")
BAD = st.lists(
    st.sampled_from(
        [*'()":/~#\\$ ', " / ", "a", "\n", ":ARG0", '"b', "\t", "\x00", "\x85", "A.1\t(", "# ::x", "\udcff"]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(BAD, GOOD)), st.booleans())
def test_a_good_record_among_bad_ones_is_never_lost(tmp_path, pairs, packed):
    text = "".join(f"{bad}\n\n{good}\n\n" for bad, good in pairs).encode("utf-8", "surrogatepass")
    file = tmp_path / "hostile.amr"
    file.write_bytes(gzip.compress(text) if packed else text)
    store = GraphStore(tmp_path / "hostile.mathamr")
    report = import_penman(file, store, mode="overwrite")
    wanted = {good.split()[2]: good for _, good in pairs}
    assert wanted.keys() <= set(store.ids())
    for name, good in wanted.items():
        assert store[name] == MathAMRGraph.from_penman(good)
    assert report.records == report.stored + report.refused
    assert report.stored == len(store)
    assert sum(report.reasons.values()) == report.refused


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_no_exception(tmp_path, data):
    file = tmp_path / "bytes"
    for content in (data, b"\x1f\x8b" + data, gzip.compress(data), b"(a / " + data):
        file.write_bytes(content)
        store = GraphStore(tmp_path / "bytes.mathamr")
        report = import_penman(file, store, mode="overwrite")
        assert report.stored == len(store)


def test_if_no_record_is_a_graph_the_error_counts_the_records(tmp_path):
    (tmp_path / "x.amr").write_text("(a / b)\n\n# ::id 1\n(\n")
    with pytest.raises(GraphError, match=r"none of its 2 records is a graph \(line 1: skipped, no") as caught:
        import_penman(tmp_path / "x.amr", GraphStore(tmp_path / "g"), allow_empty=False)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x.amr"]


def test_the_openly_licensed_graphs_are_read_without_repair(shared_data, read):
    rows = map(json.loads, (shared_data / "amr-free" / "qald9_train.jsonl").read_text(encoding="utf-8").splitlines())
    graphs = {row["id"]: row["amr"] for row in rows}
    store = read("\n\n".join(f"# ::id {name}\n{text}" for name, text in graphs.items()))
    assert store.import_report.repaired == store.import_report.refused == 0
    assert [encode_penman(store[name].amr) for name in graphs] == [
        encode_penman(decode_penman(text).with_metadata(())) for text in graphs.values()
    ]
