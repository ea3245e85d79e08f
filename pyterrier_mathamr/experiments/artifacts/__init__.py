"""The artifacts of a work folder, each made once and then found again, by Task 1, Task 2 and the studies.

::

    official.formulas                  official trees and visual ids of the collection's formulas
    graphs.mathamr                     graphs of all posts
    answers.bm25                       terms of the answers
    training-pairs.json                how many pairs may be trained on
    formulas.tangent                   symbol pairs of the formulas of all posts
    formulas-wide.tangent              the same of a wider window
    formulas.trees                     trees of the formulas of all posts
    formulas.a0                        paths of their operator trees
    formulas.cft                       their vectors by Tangent-CFT
    formulas.inout                     vectors of their nodes
    pairs/<file>.mathamr               graphs of a file of pairs
    texts.sqlite                       vectors of texts, for models with a text encoder
    topics/<name>/topics.json          topics of a year, its formula topics, or the questions of a split,
    topics/<name>/qrels.json           and their judgments
    topics/<name>/graphs.mathamr       graphs of the topics
    topics/<year>/topics.formulas      official trees of the topics' formulas
    topics/<year>/floor.csv            measures of random orders
    topics/<year>-formulas/references.csv   of random orders and of Tangent
    model, answers.mathamr, formulas.mathamr    of a task's model; those of a study's runs are in runs/<key>
"""

from .collection import Artifacts
from .formula_indexes import TANGENT
from .model import ModelArtifacts

__all__ = ["TANGENT", "Artifacts", "ModelArtifacts"]
