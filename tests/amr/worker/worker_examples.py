"""Helpers for tests of foreign parsers."""

from mathamr_systems import WorkerLimits
from pyterrier_mathamr.amr import encode_penman
from pyterrier_mathamr.posts import post_from_text

LIMITS = WorkerLimits(batch_seconds=20.0, load_seconds=60.0)
TEXTS = [f"{word} holds for $x_{i}$." for i, word in enumerate(["Alpha", "Beta", "Gamma", "Delta", "Epsilon"])]


def posts_of(texts):
    return [post_from_text(text) for text in texts]


def penman(parser, texts):
    return [encode_penman(graph) for graph in parser.parse_posts(posts_of(texts))]


def lines(marks, name):
    path = marks / name
    return path.read_text().splitlines() if path.exists() else []
