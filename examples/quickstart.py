"""From posts to a pt.Experiment table in one page, on the bundled sample. Run it in an empty folder."""

import pyterrier as pt

import pyterrier_mathamr as mathamr

# A collection. For a local copy of the ARQMath release: mathamr.register_arqmath('/data/arqmath'), then
# pt.get_dataset('irds:arqmath/2022/task1').
arqmath = pt.get_dataset("irds:arqmath/sample/task1")

# 1. From text to graphs, vectors and an index, in one stream. The model comes with the package.
model = mathamr.MathAMR.from_pretrained()
graphs = mathamr.GraphBuilder(reads=model.reads, verbose=True)  # of a graph, only what the model reads
index = mathamr.MathAMRIndex("quickstart.mathamr")
(graphs >> model.doc_encoder() >> index.indexer(mode="overwrite")).index(arqmath.get_corpus_iter())

# 2. A first stage. Any PyTerrier retriever will do.
bm25 = mathamr.BM25Index("quickstart.bm25")
bm25.indexer(mode="overwrite").index(arqmath.get_corpus_iter())

# 3. Ways to search.
encode = graphs >> model.query_encoder()
systems = {
    "BM25": bm25.retriever(),
    "single vector": encode >> index.single_vector(),
    "doc-VN + MaxSim": encode >> index.doc_vn(candidates=100),
    "ColBERT-style": encode >> index.colbert(),
    "BM25 % 100 >> scorer": bm25.retriever() % 100 >> encode >> index.scorer(),
}

# 4. A comparison with significance tests against BM25.
table = pt.Experiment(
    list(systems.values()),
    arqmath.get_topics("text"),
    arqmath.get_qrels(),
    mathamr.TASK1_MEASURES,
    names=list(systems),
    baseline=0,
    correction="bonferroni",
    filter_by_qrels=True,
)
print(mathamr.arqmath.markdown_table(table))  # a star: differs from the first, p < 0.05 after correction

# 5. One query of your own.
for row in systems["ColBERT-style"].search(r"Why does $\sum_{n=1}^{\infty} 1/n$ diverge?").head(3).itertuples():
    print(f"{row.rank + 1}. answer {row.docno}, MaxSim {row.score:.2f}")
