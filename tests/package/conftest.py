"""The sample, built once: its graphs, model and indexes, for the examples of docstrings and PyTerrier's rules."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyterrier as pt
import pytest
from marf_stand_in import save_marf

import mathamr_systems
import pyterrier_mathamr as mathamr
from mathamr_systems import InOut, InOutOptions
from pyterrier_mathamr.formula import trees_from_latex

SAMPLE = Path(mathamr.__file__).parent / "data" / "sample"


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Datasets, stages, stores and indexes over the bundled sample."""
    folder = tmp_path_factory.mktemp("sample")
    task1, task2 = (pt.get_dataset(f"irds:arqmath/sample/task{task}") for task in (1, 2))
    model = mathamr.MathAMR.from_pretrained("mathamr-plus-mini")
    graphs = mathamr.GraphBuilder()
    store = (graphs >> mathamr.GraphStore(folder / "graphs").indexer()).index(task2.get_corpus_iter(verbose=False))
    collection = mathamr.arqmath.ARQMathCollection(SAMPLE)
    visual_ids = mathamr.formula.FormulaStore.build(folder / "trees", collection.slt_tables, collection.opt_tables)
    index, formulas = mathamr.MathAMRIndex(folder / "index"), mathamr.MathAMRFormulaIndex(folder / "formulas")
    (model.doc_encoder() >> index.indexer()).index(store.get_corpus_iter())
    (model.doc_encoder() >> formulas.indexer(visual_ids=visual_ids)).index(store.get_corpus_iter())
    answers = pd.DataFrame(task1.get_corpus_iter(verbose=False))
    InOut.new([trees_from_latex(r"\frac{x+y}{2}=1")], InOutOptions(width=16)).save(folder / "in-out model")
    in_out = InOut.from_pretrained(folder / "in-out model")
    marf = mathamr_systems.MaRF.from_pretrained(save_marf(folder))
    marf_index = mathamr_systems.MaRFIndex(folder / "marf index")
    (marf.doc_encoder(device="cpu", precision="float32") >> marf_index.indexer()).index(answers.to_dict("records"))
    return SimpleNamespace(
        folder=folder,
        marf=marf,
        marf_index=marf_index,
        task1=task1,
        task2=task2,
        topics=task1.get_topics("text"),
        qrels=task1.get_qrels(),
        answers=answers,
        model=model,
        graphs=graphs,
        encode=graphs >> model.query_encoder(),
        store=store,
        index=index,
        formulas=formulas,
        bm25=mathamr.BM25Index(folder / "bm25").index(answers.to_dict("records")),
        tangent=mathamr.TangentIndex(folder / "tangent").indexer(store=visual_ids).index(answers.to_dict("records")),
        patterns=mathamr.PatternIndex(folder / "patterns").index(answers.to_dict("records")),
        in_out=mathamr_systems.InOutIndex(folder / "in-out", in_out).index(answers.to_dict("records")),
        a0=mathamr_systems.ApproachZeroIndex(folder / "a0").indexer(store=visual_ids).index(answers.to_dict("records")),
        visual_ids=visual_ids,
    )
