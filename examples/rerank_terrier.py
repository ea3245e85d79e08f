"""Add MathAMR+ to an existing pipeline: BM25 first, MaxSim over its answers, and both in one score.

With Java, `python rerank_terrier.py --terrier` (and `pip install 'pyterrier[java]'`) uses Terrier's BM25 as the first
stage; without it the first stage is BM25Index, which needs no Java. Nothing else changes. Run it in an empty folder.
"""

import sys

import pyterrier as pt

import pyterrier_mathamr as mathamr
from pyterrier_mathamr.fusion import LinearBlend

arqmath = pt.get_dataset("irds:arqmath/sample/task1")
topics, qrels = arqmath.get_topics("text"), arqmath.get_qrels()

# 1. The existing pipeline.
if "--terrier" in sys.argv:
    answers = ({"docno": post["docno"], "text": post["text"]} for post in arqmath.get_corpus_iter())
    terrier = pt.terrier.TerrierIndex("rerank.terrier").index(answers)
    # Terrier's query language has no LaTeX: tokenize for the search, then restore the question.
    bm25 = pt.rewrite.tokenise() >> terrier.bm25(num_results=100) >> pt.rewrite.reset()
else:
    lexical = mathamr.BM25Index("rerank.bm25")
    lexical.indexer(mode="overwrite").index(arqmath.get_corpus_iter())
    bm25 = lexical.retriever() % 100

# 2. The vectors of the same answers. The scorer reads only the vectors of answers that the first stage finds.
model = mathamr.MathAMR.from_pretrained()
graphs = mathamr.GraphBuilder()
index = mathamr.MathAMRIndex("rerank.mathamr")
(graphs >> model.doc_encoder() >> index.indexer(mode="overwrite")).index(arqmath.get_corpus_iter())

# 3. MathAMR+ after it: each question is encoded once, whatever the number of its answers.
encode = graphs >> model.query_encoder()
reranked = bm25 >> encode >> index.scorer()

# 4. A weighted sum of all three scores. Half of the topics fit the weights, the other half is evaluated.
known, new = topics.iloc[::2], topics.iloc[1::2]
blended = bm25 >> encode >> LinearBlend((index.scorer(), index.scorer(vectors="document")))
blended.fit(known, qrels)

table = pt.Experiment(
    [bm25, reranked, blended],
    new,
    qrels,
    mathamr.TASK1_MEASURES,
    names=["BM25", "BM25 >> MaxSim", "BM25 + MaxSim + document"],
    baseline=0,
    correction="bonferroni",
    filter_by_qrels=True,
)
print(mathamr.arqmath.markdown_table(table))  # a star: differs from the first, p < 0.05 after correction
