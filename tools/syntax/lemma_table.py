"""The words whose lemma the spelling rules get wrong, and common nouns that may look like names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from treebank import rows

from pyterrier_mathamr.amr.dependency.lexicon import by_rule

_KINDS = {"V": "v", "N": "n", "J": "a", "R": "a"}


def lemma_table(path: Path) -> dict[str, str]:
    """Count the lemmas of a treebank.

    Args:
        path: a gzipped CoNLL-U file.

    Returns:
        ``letter:word`` (n noun, v verb, a adjective or adverb) to the lemma, where that of the rules differs; and
        ``c:word`` to the empty string for each word that is more often common than a name.
    """
    seen: dict[str, Counter[tuple[str, str]]] = {}
    common: Counter[str] = Counter()
    for _, form, lemma, _, tag, *_ in (row for words in rows(path) for row in words):
        if not form.isalpha():
            continue
        word = form.lower()
        if tag in ("NNP", "NNPS"):
            common[word] -= 1
        elif tag[0] in _KINDS:
            seen.setdefault(f"{_KINDS[tag[0]]}:{word}", Counter())[lemma.lower(), tag] += 1
            common[word] += 1
    table = {}
    for key, counts in sorted(seen.items()):
        (lemma, tag), _ = counts.most_common(1)[0]
        if lemma != by_rule(key[2:], tag):
            table[key] = lemma
    return table | {f"c:{word}": "" for word, count in sorted(common.items()) if count > 0 and len(word) > 2}
