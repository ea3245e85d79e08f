"""Training variants and testing whether they differ: fewer trees, or attention in the layers, on the bundled sample.

The sample is tiny, so this needs seconds and its table means nothing: it shows the method. Real studies
train each condition with several seeds: `python -m studies paper/4.6 ARQMATH_FOLDER`. Run it in an empty folder.
"""

import pyterrier as pt

import pyterrier_mathamr as mathamr

arqmath = pt.get_dataset("irds:arqmath/sample/task1")
topics, qrels = arqmath.get_topics("text"), arqmath.get_qrels()

# 1. The graphs of questions and answers, once for all variants: each uses a part of them.
posts = mathamr.GraphStore("variant-graphs.mathamr")
everything = pt.get_dataset("irds:arqmath/sample/task2").get_corpus_iter()
(mathamr.GraphBuilder() >> posts.indexer(mode="overwrite")).index(everything)

# 2. Pairs of a question and its answer. The test uses other questions.
answers = {post.doc_id: post.parent_id for post in arqmath.irds_ref().docs_iter()}
pairs = [(question, answer) for answer, question in answers.items()]

# 3. Conditions that differ in one option, with the same seed. The last has another convolution of torch-geometric.
small = mathamr.MathAMRConfig(layers=2, hidden=32, projection=16, bases=16, epochs=2, batch_size=32, seed=42)
conditions = {
    "both trees": small,
    "operator trees": small.replace(formulas="opt"),
    "attention": small.replace(conv="torch_geometric.nn.RGATConv"),
}

systems = {}
for name, config in conditions.items():
    trainer = mathamr.Trainer(config)
    model = trainer.fit(pairs, posts, verbose=False)
    best = min(trainer.history, key=lambda epoch: epoch.validation_loss)
    print(f"{name}: epoch {best.epoch}, validation loss {best.validation_loss:.3f}")
    index = mathamr.MathAMRIndex(f"{name}.mathamr")
    of_answers = ({"docno": docno, "graph": posts[docno]} for docno in answers)
    (model.doc_encoder() >> index.indexer(mode="overwrite")).index(of_answers)
    systems[name] = mathamr.GraphBuilder() >> model.query_encoder() >> index.colbert()

# 4. The difference, its p-value in a two-tailed paired t-test, and the p-value corrected for the number of systems.
table = pt.Experiment(
    list(systems.values()),
    topics,
    qrels,
    mathamr.TASK1_MEASURES,
    names=list(systems),
    baseline=0,
    correction="bonferroni",
    filter_by_qrels=True,
)
ndcg = str(mathamr.TASK1_MEASURES[0])
print(table[["name", ndcg, f"{ndcg} p-value", f"{ndcg} p-value corrected", f"{ndcg} reject"]].round(3).to_string())
