"""`DependencyAmrParser`: the embedded parser. Deterministic, without downloads, some hundred posts a second on a core.

sentence -> tokens -> tags and dependency tree (`syntax`) -> nodes, wrappers, edges (`conversion`, `roles`) -> Penman
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .merge import Part, merged
from .penman_io import encode_penman
from .protocol import TextParser, placeholders_in
from .sentence import part_of_sentence
from .syntax import MAX_TOKENS, bundled_net
from .words import tokenize

if TYPE_CHECKING:
    from .syntax import SyntaxNet


class DependencyAmrParser(TextParser):
    """Parses English by a dependency tree and rules from there to AMR.

    The weights are loaded when the first sentence is parsed. The same sentences give the same graphs, whatever is
    parsed with them.

    Args:
        net: the network to use instead of the package's.

    Example:
        >>> DependencyAmrParser().parse_sentences(["FORMULA_0 converges to FORMULA_1."])
        ['(c / converge-01 :ARG1 (f0 / FORMULA_0) :ARG2 (f1 / FORMULA_1))']
    """

    name = "dependency"

    def __init__(self, net: SyntaxNet | None = None) -> None:
        self._net = net

    def __repr__(self) -> str:
        return "DependencyAmrParser()"

    def parse_sentences(self, sentences: Sequence[str]) -> list[str]:
        """Parse sentences, each for itself.

        Args:
            sentences: English text, formulas as ``FORMULA_0``; each may be empty, or no sentence at all.

        Returns:
            For each a Penman text on one line, with each of its placeholders as one node.
        """
        parts = self.parts_of(sentences)
        return [
            encode_penman(merged([part], placeholders_in(sentence)))
            for part, sentence in zip(parts, sentences, strict=True)
        ]

    def parts_of(self, texts: Sequence[str]) -> list[Part]:
        """Parse texts to parts without writing them."""
        net = self._net or bundled_net()
        pieces: list[list[str]] = []
        owners: list[int] = []
        for i, text in enumerate(texts):
            tokens = tokenize(text)
            for start in range(0, len(tokens), MAX_TOKENS):
                pieces.append(tokens[start : start + MAX_TOKENS])
                owners.append(i)
        parts = [Part() for _ in texts]
        for owner, syntax in zip(owners, net.analyse(pieces), strict=True):
            parts[owner].extend(part_of_sentence(syntax, net.lemmas))
        return parts
