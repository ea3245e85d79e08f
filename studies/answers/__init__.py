"""Studies of answer retrieval (Task 1): systems that are made of a collection, in one table beside the common rows.

::

    definition     AnswerRow, AnswerStudy: a study is data
    parts          AnswerParts: what a row is made of, and where its model, index and rankings are kept
    rows/          what several studies have
      common         BM25, MiniLM (one vector; MaxSim of tokens), mathamr-plus-text; random orders come with the tables
      text_vectors   the untrained vectors of MiniLM
      structural     Approach Zero and words, the structural side of a hybrid
      best_formula   an answer has the score of its best formula
      with_question  systems that read an answer together with its question
    colbert, hybrid, marf, two_step, extract ─▶ registry     one file for each study
                                                   ▼
                                            answer_study_run ─▶ tables      rank, measure, test, report

How a study is added
--------------------

Each study has a file here with a constant ``STUDY``; ``registry`` lists the files. A row says how its system is made
of :class:`AnswerParts`::

    def _index(parts: AnswerParts) -> tuple[Model, MathAMRIndex]:
        def train(path: Path) -> None:
            Model.new(…).fit(read_training_pairs(parts.shared.collection.path).train, seed=parts.seed).save(path)

        model = Model.from_pretrained(parts.stage("model", train, trained=True, epochs=2))
        …                                               # the same for the index, which is made with the model

    def _system(parts: AnswerParts) -> pt.Transformer:
        model, index = parts.once(("model", parts.seed), lambda: _index(parts))   # loaded once for all topics
        return model.query_encoder() >> index.colbert(num_results=DEPTH)

    TRAINED = AnswerRow("Model", _system, against=(TOKEN_ROW.name, SINGLE_ROW.name), trained=True)
    FUSED = AnswerRow("Model + BM25", _fused, against=(TRAINED.name,), trained=True)
    STUDY = AnswerStudy("answers/model", "What the model finds", rows=(TRAINED, FUSED))

* ``make`` is called for each set of topics (``parts.of``: each year, and ``known item``) and each seed (``parts.seed``;
  -1 unless ``trained=True``). It returns a transformer from ``qid``, ``query``, ``title``, ``body`` to a ranking.
* ``parts.stage(name, build, trained=True, **settings)`` makes an artifact once for the settings given (with
  ``trained``, also for seed, preset and options of ``--set``) and returns its path; a second call, row, study or
  process finds it. ``build`` is given the path; work of a run that was killed is still there.
* ``parts.ranking(row)`` is what another row found for the same topics and seed, without searching again; a fusion takes
  it in place of a system: ``ConvexFusion(parts.ranking(A), parts.ranking(B))``.
* ``parts.threads`` is the ``ThreadStore`` of all posts; ``parts.answer_texts()`` adds ``html`` to a ranking, for text
  scorers. ``parts.found`` has topics and judgments,
  ``parts.at(of=year).found`` those of another year, ``parts.other_years`` the years that a row with ``fitted=True`` may
  be fitted on, ``parts.shared`` everything else that a collection has: ``collection``, ``bm25``, ``graphs``,
  ``approach0``, ``pairs`` (files of ``--pairs``), ``questions("validation")`` …
* ``parts.preset`` (``mini`` or ``full``) and ``parts.changes`` choose and change the recipe.
* Rankings are kept by the row's name and ``settings``: while a system is being written, change ``settings`` (or delete
  ``answers/rankings`` of the work folder) to rank again.
* ``known=False``: no known items; ``linked=False``: no answers of linked questions, either. ``more=``: a function
  from the :class:`Outcome` to further tables.
* A row with the name of a common row takes its place; what other studies and ``run_arqmath`` use of a study, they
  import from its file.

Run one with ``mathamr experiment answers/model --collection FOLDER --workdir WORK``; work folders may be shared.
"""

from __future__ import annotations

from .answer_study_run import run_answer_study as run_answer_study
from .definition import AnswerRow as AnswerRow
from .definition import AnswerStudy as AnswerStudy
from .definition import Outcome as Outcome
from .parts import DEPTH as DEPTH
from .parts import AnswerParts as AnswerParts
from .registry import ANSWER_STUDIES as ANSWER_STUDIES
from .rows.common import BM25_ROW as BM25_ROW
from .rows.common import COMMON_ROWS as COMMON_ROWS
from .rows.common import MATHAMR_ROW as MATHAMR_ROW
from .rows.common import SINGLE_ROW as SINGLE_ROW
from .rows.common import TOKEN_ROW as TOKEN_ROW
from .rows.structural import STRUCTURAL_ROW as STRUCTURAL_ROW
