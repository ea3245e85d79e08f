"""Snippets and pieces of posts: what is shown of a long one, and that the work has a limit."""

import pytest

from pyterrier_mathamr.engine import snippets
from pyterrier_mathamr.engine.snippets import Matcher, best_piece, best_snippet, marked_post, marked_text, piece_of
from pyterrier_mathamr.posts import MathPost, PostFormula, plain_text
from pyterrier_mathamr.sparse.tokens import TokenOptions


def post(*sentences: str) -> MathPost:
    """A post with a formula after each sentence."""
    text = " ".join(f"{sentence} FORMULA_{i}." for i, sentence in enumerate(sentences))
    return MathPost(text, tuple(PostFormula(f"x_{{{i}}}") for i in range(len(sentences))))


def matcher_of(query: MathPost) -> Matcher:
    return Matcher(query, TokenOptions(), lambda _: 1.0)


LONG = post(*(f"Sentence number {i} adds nothing new" for i in range(40)))


@pytest.mark.parametrize("longest", [1, 17, 300, 50_000, 10_000_000])
def test_pieces_one_after_the_other_are_the_whole_post(longest) -> None:
    pieces, start = [], 0
    while not pieces or start < pieces[-1].characters:
        pieces.append(piece_of(LONG, start, longest))
        assert pieces[-1].end > start
        assert pieces[-1].start == start
        start = pieces[-1].end
    assert "".join(piece.text for piece in pieces) == LONG.text
    written = [len(plain_text(MathPost(piece.text, LONG.formulas))) for piece in pieces]
    assert written == [piece.end - piece.start for piece in pieces]
    assert sum(written) == pieces[0].characters == len(plain_text(LONG))
    assert max(written) <= max(longest, 30)  # the longest word or formula


def test_in_a_script_without_spaces_what_matches_is_marked_and_not_the_clause() -> None:
    text = MathPost("每个有界实数列都有收敛子列。数列收敛。", ())
    shown = best_snippet(text, pairs := matcher_of(MathPost("收敛子列", ())))
    assert marked_text(shown, text, pairs) == "每个有界实数列都有**收敛子列**。数列**收敛**。"
    assert marked_text(shown, text, matcher_of(MathPost("都", ()))) == "每个有界实数列**都**有收敛子列。数列收敛。"
    assert '<mark class="part-w">' not in marked_post(text, pairs)


def test_a_piece_never_begins_or_ends_in_a_formula() -> None:
    text = MathPost("a FORMULA_0 b", (PostFormula("y" * 100),))
    assert [piece_of(text, start, 5).text for start in (0, 2, 50, 104, 105, 999)] == [
        "a ", "FORMULA_0", "FORMULA_0", " b", "b", "",
    ]  # fmt: skip


def test_the_piece_of_a_long_post_is_the_one_that_matches_best() -> None:
    lines = [f"Sentence number {i} adds nothing new" for i in range(3_000)]
    lines[2_500] = "Here is the harmonic series"
    long, matcher = post(*lines), matcher_of(MathPost("harmonic series", ()))
    piece = best_piece(long, matcher)
    assert "harmonic series" in piece.text
    assert 0 < piece.start < piece.end <= piece.characters
    assert piece.end - piece.start <= snippets.LONGEST_PIECE
    assert best_piece(long, matcher, 0).start == 0
    assert best_piece(post("Here is the harmonic series"), matcher).text.startswith("Here is")


def test_a_snippet_of_a_long_post_comes_from_its_beginning_and_a_long_sentence_is_cut() -> None:
    many = MathPost(" ".join(f"Word{i} adds nothing." for i in range(40_000)) + " Harmonic.", ())
    snippet = best_snippet(many, matcher_of(MathPost("harmonic", ())))
    assert snippet.cut
    assert len(snippet.text) < 300
    endless = best_snippet(MathPost("word " * 200_000, ()), matcher_of(MathPost("word", ())))
    assert endless.cut
    assert len(endless.text) <= 1_000


def test_of_many_formulas_of_a_query_the_first_are_looked_for() -> None:
    query = MathPost("", tuple(PostFormula(f"y_{{{i}}}") for i in range(1_300)))
    matcher = matcher_of(query)
    assert matcher.like("y_{3}") == 3
    assert matcher.like(f"y_{{{snippets.MATCHED + 1}}}") != snippets.MATCHED + 1


def test_a_formula_that_is_too_long_is_shown_as_its_beginning() -> None:
    long = MathPost("FORMULA_0 FORMULA_1", (PostFormula("z" * 1_000_000), PostFormula("x")))
    html = marked_post(long, matcher_of(MathPost("", ())))
    assert len(html) < 2_000
    assert "zzz …</code>" in html
    assert "<math" in html
