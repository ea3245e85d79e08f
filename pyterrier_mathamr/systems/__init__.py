"""Systems that MathAMR+ is compared with or built upon, each a transformer.

::

    sparse/  reading, postings, index, ranking: what the sparse systems share
      bm25/        posts with formulas ──▶ BM25Index, BM25Retriever            ┐
      graph_terms/ graphs of posts ──────▶ GraphTermsIndex and its retriever   │
      formulas/    systems that rank formulas: Tangent, Approach Zero, In+Out… ├──▶ fusion/  several rankings in one
      structural/  words by BM25 and formulas by Approach Zero, for a question │
    answers/ systems that read questions and answers with language models      │
    index/   MathAMR+'s own retrievers and scorers                             ┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyterrier_mathamr._common.lazy import lazy_names

if TYPE_CHECKING:
    from pyterrier_mathamr.model.in_out import InOut as InOut
    from pyterrier_mathamr.model.in_out import InOutOptions as InOutOptions

    from .answers.colbert import ColBERT as ColBERT
    from .answers.colbert import ColBERTDocEncoder as ColBERTDocEncoder
    from .answers.colbert import ColBERTOptions as ColBERTOptions
    from .answers.colbert import ColBERTQueryEncoder as ColBERTQueryEncoder
    from .answers.colbert import ColBERTTextScorer as ColBERTTextScorer
    from .answers.colbert import ColBERTTraining as ColBERTTraining
    from .answers.extract import CosineScorer as CosineScorer
    from .answers.extract import ExtractAnswer as ExtractAnswer
    from .answers.extract import Snippet as Snippet
    from .answers.extract import longest_prefix as longest_prefix
    from .answers.extract import snippets_of as snippets_of
    from .answers.marf import MaRF as MaRF
    from .answers.marf import MaRFConfig as MaRFConfig
    from .answers.marf import MaRFIndex as MaRFIndex
    from .answers.marf import MaRFIndexer as MaRFIndexer
    from .answers.marf import MaRFTraining as MaRFTraining
    from .answers.math_tokens import math_tokens as math_tokens
    from .answers.math_tokens import post_text as post_text
    from .answers.math_vocabulary import MathVocabulary as MathVocabulary
    from .answers.threads import BestAnswer as BestAnswer
    from .answers.threads import ThreadAnswers as ThreadAnswers
    from .answers.threads import ThreadMetadata as ThreadMetadata
    from .answers.threads import ThreadPost as ThreadPost
    from .answers.threads import ThreadPostError as ThreadPostError
    from .answers.threads import ThreadQuestions as ThreadQuestions
    from .answers.threads import ThreadStore as ThreadStore
    from .answers.threads import ThreadStoreIndexer as ThreadStoreIndexer
    from .answers.threads import ThreadTextLoader as ThreadTextLoader
    from .answers.threads import WithQuestion as WithQuestion
    from .answers.threads import with_question as with_question
    from .answers.two_step import FitOptions as FitOptions
    from .answers.two_step import FormulaAnswers as FormulaAnswers
    from .answers.two_step import LinkedPosts as LinkedPosts
    from .answers.two_step import MathSEScore as MathSEScore
    from .answers.two_step import QASim as QASim
    from .answers.two_step import QASimScorer as QASimScorer
    from .answers.two_step import QQSim as QQSim
    from .answers.two_step import RankingSVM as RankingSVM
    from .answers.two_step import TangentAnswers as TangentAnswers
    from .answers.two_step import TimesQQ as TimesQQ
    from .answers.two_step import TwoStepFeatures as TwoStepFeatures
    from .answers.two_step import linearise as linearise
    from .bm25 import PLAIN_TOKENS as PLAIN_TOKENS
    from .bm25 import STRONG_TOKENS as STRONG_TOKENS
    from .bm25 import BM25Index as BM25Index
    from .bm25 import BM25Indexer as BM25Indexer
    from .bm25 import BM25Retriever as BM25Retriever
    from .bm25 import TokenOptions as TokenOptions
    from .bm25 import formula_tokens as formula_tokens
    from .bm25 import post_tokens as post_tokens
    from .bm25 import word_tokens as word_tokens
    from .errors import BlendFileError as BlendFileError
    from .errors import BlendNotFittedError as BlendNotFittedError
    from .errors import CheckpointFormError as CheckpointFormError
    from .errors import NoModelError as NoModelError
    from .errors import NothingJudgedError as NothingJudgedError
    from .errors import RankerFileError as RankerFileError
    from .errors import RankerNotFittedError as RankerNotFittedError
    from .errors import SystemsError as SystemsError
    from .errors import TooManyDocumentsError as TooManyDocumentsError
    from .formulas.approach0 import ApproachZeroIndex as ApproachZeroIndex
    from .formulas.approach0 import ApproachZeroIndexer as ApproachZeroIndexer
    from .formulas.approach0 import ApproachZeroRetriever as ApproachZeroRetriever
    from .formulas.approach0 import ApproachZeroScorer as ApproachZeroScorer
    from .formulas.cft import FastTextOptions as FastTextOptions
    from .formulas.cft import TangentCFT as TangentCFT
    from .formulas.cft import TangentCFTIndexer as TangentCFTIndexer
    from .formulas.edit_distance import EDIT_COSTS as EDIT_COSTS
    from .formulas.edit_distance import EditCosts as EditCosts
    from .formulas.edit_distance import EditDistanceReranker as EditDistanceReranker
    from .formulas.edit_distance import tree_edit_distance as tree_edit_distance
    from .formulas.formula_ltr import FormulaFeatures as FormulaFeatures
    from .formulas.formula_ltr import ListwiseRanker as ListwiseRanker
    from .formulas.formula_ltr import PairwiseRanker as PairwiseRanker
    from .formulas.in_out import InOutIndex as InOutIndex
    from .formulas.in_out import InOutIndexer as InOutIndexer
    from .formulas.in_out import InOutRetriever as InOutRetriever
    from .formulas.tangent import PairOptions as PairOptions
    from .formulas.tangent import TangentIndex as TangentIndex
    from .formulas.tangent import TangentIndexer as TangentIndexer
    from .formulas.tangent import TangentRetriever as TangentRetriever
    from .formulas.tangent_s import AlignmentScores as AlignmentScores
    from .formulas.tangent_s import TangentS as TangentS
    from .formulas.tangent_s import alignment_scores as alignment_scores
    from .formulas.trees import FormulaTrees as FormulaTrees
    from .formulas.trees import FormulaTreesIndexer as FormulaTreesIndexer
    from .fusion import ConvexFusion as ConvexFusion
    from .fusion import Ensemble as Ensemble
    from .fusion import ModifiedRRF as ModifiedRRF
    from .fusion import ZScoreFusion as ZScoreFusion
    from .fusion import fit_fusion_weight as fit_fusion_weight
    from .fusion import fit_fusion_weights as fit_fusion_weights
    from .fusion import fuse_rankings as fuse_rankings
    from .fusion.blend import LinearBlend as LinearBlend
    from .graph_terms import GraphTerms as GraphTerms
    from .graph_terms import GraphTermsIndex as GraphTermsIndex
    from .graph_terms import GraphTermsIndexer as GraphTermsIndexer
    from .graph_terms import GraphTermsRetriever as GraphTermsRetriever
    from .graph_terms import GraphTermsScorer as GraphTermsScorer
    from .graph_terms import terms_of_graph as terms_of_graph
    from .structural import StructuralSearch as StructuralSearch

__getattr__, __dir__, __all__ = lazy_names(__name__)
