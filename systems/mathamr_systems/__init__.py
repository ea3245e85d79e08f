"""Other systems: baselines for MathAMR+ and systems that use it, each a transformer; and experiments with all of them.

::

    formula_trees    both trees of each formula, in a few arrays; the cost of changing one tree into another
    approach0/       formulas by leaf-root paths of their operator trees
    tangent_s        Tangent's candidates, ranked by how well trees align
    tangent_cft/     formulas by vectors that fastText learns from pairs of symbols
    in_out/          formulas by a vector for each symbol, learned from formulas
    formula_ltr/     many similarities of trees, as features for learning to rank
    structural       words by BM25 and formulas by Approach Zero, for a question
    query_reduction  the words and formulas of a question that are worth searching with

    math_tokens      a formula as tokens that a language model reads: $frac$ $1$ $2$
    language_models  code shared by systems over pretrained language models
    formula_texts    a formula as a text, by itself or in its post, for any model of texts
    colbert/         token rows of questions and answers, compared by MaxSim
    marf/            token rows of a text, fused with the vectors of its formulas
    mathamr_sbert    formulas by the sentences around them, linearized MathAMR graphs and Sentence-BERT

    threads/         the answers to a question, with votes, comments, tags and texts
    two_step/        similar questions first, then their answers; a ranking SVM over both similarities
    extract          one answer for each topic, cut from the first-ranked ones

    amr/             neural AMR parsers in other interpreters
    ntcir12, release_checks      a folder of NTCIR-12 MathWiki; checks and counts of a copy of ARQMath
    experiments/, charts, cli    whole experiments, from posts to tables; their charts; commands of ``mathamr``

BM25 and Tangent are in :mod:`pyterrier_mathamr.sparse`, combinations of rankings in :mod:`pyterrier_mathamr.fusion`.

More than a third of this package is ColBERT, MaRF and the two-step search, which are trained here and not only applied.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
