"""The training data of the study of the two-step search, and its measurement of the search for questions."""

import dataclasses
import itertools
import shutil
from pathlib import Path

import pandas as pd
import pyterrier as pt
import pytest

import pyterrier_mathamr
from mathamr_systems.experiments.systems import AnswerParts
from mathamr_systems.experiments.workdir import Artifacts
from pyterrier_mathamr._common.errors import ConfigError
from pyterrier_mathamr.arqmath import ARQMathCollection, known_item_split
from studies.answers import two_step
from studies.answers.two_step import RECIPES, judged_examples, recipe_of
from studies.answers.two_step_tables import linked_questions, mean_reciprocal_rank

SAMPLE = Path(pyterrier_mathamr.__file__).parent / "data" / "sample"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> AnswerParts:
    """The sample, in which each question is linked to the next, and to one with a known title only."""
    folder = tmp_path_factory.mktemp("two-step")
    shutil.copytree(SAMPLE, folder / "sample")
    names = [post.id for post in ARQMathCollection(SAMPLE).questions()]
    lines = ["question_id\trelated_question_id\ttype\trelated_title"]
    for one, other in itertools.pairwise(names):
        lines += [f"{one}\t{other}\tduplicate\tnext", f"{one}\t99{one}\trelated\tThe sum $x^2$"]
    (folder / "sample" / "links.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    shared = Artifacts(folder / "sample", folder / "work", verbose=False)
    return AnswerParts(shared, "2022", ("sample", "2022"), seed=1)


def test_training_pairs_leave_out_test_questions_and_judgments_come_from_other_years(parts: AnswerParts) -> None:
    links = two_step.linked_texts(parts)
    names = {name for link in links for name in link.names if not name.startswith("link ")}
    assert {"train", "validation"} == {known_item_split(name) for name in names}
    test = [texts for name, texts in two_step.question_texts(parts).items() if known_item_split(name) == "test"]
    assert test
    assert not {texts.body for texts in test} & {texts.body for link in links for texts in (link.left, link.right)}
    for link in links:
        splits = {known_item_split(name) for name in link.names if not name.startswith("link ")}
        assert link.held_out or splits == {"train"}
    assert {link.right.title for link in links if link.kind == "related"} == {"The sum $x^2$"}

    examples = judged_examples(parts)
    judged = two_step.judged(parts, "sample")
    assert len(examples) == len(judged) > 0
    assert {target for _, _, target in examples} <= {0.0, 0.5, 1.0}
    topics = set(two_step.topic_frame(parts, "sample")["query"])
    assert {question for question, _, _ in examples} <= topics


def test_linked_questions_are_found_and_the_reciprocal_rank_is_cut_at_ten(parts: AnswerParts) -> None:
    wanted = linked_questions(parts, "duplicate")
    assert wanted
    names = list(two_step.question_texts(parts))
    for asked, others in wanted.items():
        assert known_item_split(asked) == "test"
        place = names.index(asked)
        assert others == {*names[max(place - 1, 0) : place], *names[place + 1 : place + 2]}
    assert linked_questions(parts, "all") == wanted  # the related ones are not in the collection

    ranking = {"a": ["x", "right", "right too"], "b": [*"0123456789", "right"]}
    right = {"a": {"right", "right too"}, "b": {"right"}, "c": {"right"}}
    assert mean_reciprocal_rank(ranking, right) == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert mean_reciprocal_rank({}, {}) == 0.0


def test_recipes_take_a_seed_and_options_by_hand() -> None:
    recipe = recipe_of("mini", {"epochs": 3}, seed=7)
    assert {(options.epochs, options.seed) for options in (recipe.links, recipe.pairs, recipe.judgments)} == {(3, 7)}
    assert (RECIPES["full"].judgments.epochs, RECIPES["full"].links.batch_size) == (50, 64)
    assert (recipe.c, recipe_of("mini", {"c": 2.0}, 7).c) == (RECIPES["mini"].c, (2.0,))
    with pytest.raises(ConfigError, match="margin"):
        recipe_of("mini", {"margin": 1}, 0)


def test_depth_and_c_train_no_model_again(parts: AnswerParts, monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(of: AnswerParts, name: str, *_: object, **settings: object) -> Path:
        return Path(f"{name} {dict(of.changes)} {settings}")

    monkeypatch.setattr(AnswerParts, "stage", stage)

    def paths(**changes: float) -> list[Path]:
        own = dataclasses.replace(parts, changes=changes)
        return [two_step._question_path(own, "title", "mathamr"), two_step.answer_model_path(own)]

    assert paths(depth=2, c=1.0) == paths()
    assert paths(epochs=3) != paths()


def test_only_judged_answers_or_the_first_of_all_are_ranked(
    parts: AnswerParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = two_step.judged(parts.at(of="sample"), "sample")
    docnos = ["unjudged", judged[0].answer, "another"]
    found = pd.DataFrame({"qid": judged[0].topic, "docno": docnos, "score": [3.0, 2.0, 1.0], "rank": range(3)})
    monkeypatch.setattr(two_step, "candidates", lambda *_: pt.Transformer.from_df(found))
    topics = found[["qid"]].drop_duplicates()

    def ranked(**changes: int) -> list[str]:
        own = dataclasses.replace(parts, of="sample", changes=changes)
        return two_step.ranked_candidates(own)(topics)["docno"].tolist()

    assert ranked() == [judged[0].answer]
    assert ranked(depth=2) == docnos[:2]
    assert (RECIPES["full"].depth or 0) > 1000  # answers to a thousand questions


def test_the_published_recipe_reads_whole_questions_then_duplicates_and_judgments_without_pretraining(
    parts: AnswerParts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained: list[tuple[str, str, str, bool]] = []

    def train(parts, name, start, view, form, options, *, duplicates):
        trained.append((name, str(start), view, duplicates))
        return tmp_path / name

    monkeypatch.setattr(two_step, "_trained", train)
    full = dataclasses.replace(parts, preset="full")
    for view in two_step.RAW:
        two_step._question_path(full, view, "raw")
    first = ("qqsim-links", RECIPES["full"].questions, "whole", False)
    links = str(tmp_path / "qqsim-links")
    assert trained == [step for view in two_step.RAW for step in (first, (f"qqsim-{view}", links, view, True))]
    assert recipe_of("full", {"epochs": 2}, 0).pairs is None
