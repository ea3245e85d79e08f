"""Train the tagger and dependency parser of `DependencyAmrParser` on UD English EWT and write its quantised weights.

    OMP_NUM_THREADS=1 python tools/train_syntax.py UD_FOLDER pyterrier_mathamr/data/parser --epochs 30

UD_FOLDER holds en_ewt-ud-{train,dev,test}.conllu.gz. Takes 8 minutes on one core. One seed gives one result on one
machine; the weights in the package are what this command wrote. The network is trained as it is run: all activations
and weights are rounded to 8 bits in the forward pass, and the gradient passes through the rounding. ``--words-only``
writes the table of lemmas anew and leaves the weights.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pyterrier_mathamr.amr.lemmas import by_rule
from pyterrier_mathamr.amr.words import FEATURES, feature_ids, features_of

WIDTH, ARC, LABEL, DILATIONS, REACH = 128, 96, 96, (1, 2, 4, 1), 24


Ids = dict[str, int]
_KEPT_PRONOUNS = ("I", "you", "it", "that", "which", "who", "what")


class Tree:
    """A sentence of the treebank."""

    def __init__(
        self, words: list[str], upos: list[str], tags: list[str], heads: list[int], relations: list[str]
    ) -> None:
        self.words, self.upos, self.tags, self.heads, self.relations = words, upos, tags, heads, relations

    def without(self, drop: int) -> Tree:
        """Copy the tree without leaf ``drop``."""
        keep = [i for i in range(len(self.words)) if i != drop]
        at = {-1: -1, **{old: new for new, old in enumerate(keep)}}
        return Tree(*([column[i] for i in keep] for column in (self.words, self.upos, self.tags)),
                    [at[self.heads[i]] for i in keep], [self.relations[i] for i in keep])  # fmt: skip


def read(path: Path) -> list[Tree]:
    """Read the sentences of a CoNLL-U file."""
    trees = []
    for block in gzip.decompress(path.read_bytes()).decode().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line and line[0] != "#"]
        rows = [row for row in rows if row[0].isdigit()]
        if rows:
            trees.append(Tree([r[1] for r in rows], [r[3] for r in rows], [r[4] for r in rows],
                              [int(r[6]) - 1 for r in rows], [r[7] for r in rows]))  # fmt: skip
    return trees


def lemma_table(path: Path) -> dict[str, str]:
    """Lemmas that the rules get wrong, as ``letter:word``, and common nouns that may look like names, as ``c:word``."""
    seen: dict[str, Counter] = {}
    common: Counter = Counter()
    for line in gzip.decompress(path.read_bytes()).decode().split("\n"):
        row = line.split("\t")
        if len(row) < 5 or not row[0].isdigit() or not row[1].isalpha():
            continue
        word, lemma, tag = row[1].lower(), row[2].lower(), row[4]
        kind = {"V": "v", "N": "n", "J": "a", "R": "a"}.get(tag[0])
        if tag in ("NNP", "NNPS"):
            common[word] -= 1
        elif kind:
            seen.setdefault(f"{kind}:{word}", Counter())[lemma, tag] += 1
            common[word] += 1
    table = {}
    for key, counts in sorted(seen.items()):
        (lemma, tag), _ = counts.most_common(1)[0]
        if lemma != by_rule(key[2:], tag):
            table[key] = lemma
    return table | {f"c:{word}": "" for word, count in sorted(common.items()) if count > 0 and len(word) > 2}


def varied(tree: Tree, rng: random.Random) -> Tree:
    """Make the treebank look more like posts and questions: formulas for bare nominals, lower case, no final stop."""
    words, tags = list(tree.words), list(tree.tags)
    has_child = set(tree.heads)
    rate = rng.choice((0.0, 0.0, 0.25, 0.5))
    for i, upos in enumerate(tree.upos):
        bare = upos in ("NOUN", "PROPN", "PRON", "NUM") and i not in has_child and words[i] not in _KEPT_PRONOUNS
        if bare and rng.random() < rate:
            words[i], tags[i] = "FORMULA_0", "NN"
    if rng.random() < 0.25:
        words = [word if word.startswith("FORMULA_") else word.lower() for word in words]
    tree = Tree(words, tree.upos, tags, tree.heads, tree.relations)
    last = len(words) - 1
    if last > 1 and tree.upos[last] == "PUNCT" and last not in has_child and rng.random() < 0.3:
        tree = tree.without(last)
    return tree


def rounded(x: torch.Tensor, low: float) -> torch.Tensor:
    """Clip to [low, 1] and round to steps of 1/127."""
    x = x.clamp(low, 1.0)
    return x + (torch.round(x * 127) / 127 - x).detach()


class Rounded(nn.Linear):
    """A linear layer whose weight is rounded to 8 bits with one scale."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the layer."""
        scale = self.weight.abs().max().detach() / 127
        weight = self.weight + (torch.round(self.weight / scale) * scale - self.weight).detach()
        return nn.functional.linear(x, weight, self.bias)


class Net(nn.Module):
    """The network of `pyterrier_mathamr.amr.syntax` with gradients."""

    def __init__(self, entries: int, tags: int, relations: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(entries, WIDTH)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.wide = nn.ModuleList(Rounded(3 * WIDTH, WIDTH) for _ in DILATIONS)
        self.back = nn.ModuleList(Rounded(WIDTH, WIDTH) for _ in DILATIONS)
        self.tag = Rounded(WIDTH, tags)
        self.dependent, self.head = Rounded(WIDTH, ARC), Rounded(WIDTH, ARC)
        self.root = nn.Parameter(torch.zeros(ARC))
        self.distance = nn.Parameter(torch.zeros(2 * REACH + 1))
        self.label_dependent, self.label_head = Rounded(WIDTH, LABEL), Rounded(WIDTH, LABEL)
        self.root_label = nn.Parameter(torch.zeros(LABEL))
        self.label = Rounded(LABEL, relations)
        self.drop = nn.Dropout(0.25)

    def tokens(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Hidden states ``[sentences, tokens, width]``."""
        rows = self.embedding(ids)
        h = rounded((rows + (torch.round(rows.clamp(-1, 1) * 127) / 127 - rows).detach()).sum(2), -1.0)
        h = self.drop(h) * mask
        for wide, back, dilation in zip(self.wide, self.back, DILATIONS, strict=True):
            left = nn.functional.pad(h, (0, 0, dilation, 0))[:, : h.shape[1]]
            right = nn.functional.pad(h, (0, 0, 0, dilation))[:, dilation:]
            u = rounded(wide(torch.cat([left, h, right], 2)), 0.0)
            h = rounded(h + back(self.drop(u)), -1.0) * mask
        return self.drop(h)

    def arcs(self, h: torch.Tensor) -> torch.Tensor:
        """Scores of heads ``[sentences, dependents, 1 + heads]``; the first is the root."""
        dependent = rounded(self.dependent(h), -1.0)
        heads = torch.cat([rounded(self.root, -1.0).expand(h.shape[0], 1, -1), rounded(self.head(h), -1.0)], 1)
        places = torch.arange(h.shape[1])
        gap = (places[None, :] - places[:, None]).clamp(-REACH, REACH) + REACH  # [dependent, head]
        bias = nn.functional.pad(self.distance[gap], (1, 0))
        return dependent @ heads.transpose(1, 2) + bias

    def labels(self, h: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """Scores of relations to given heads."""
        from_head = torch.cat([self.root_label.expand(h.shape[0], 1, -1), self.label_head(h)], 1)
        chosen = from_head.gather(1, (heads + 1)[..., None].expand(-1, -1, LABEL))
        return self.label(self.drop(rounded(self.label_dependent(h) + chosen, 0.0)))


def batches(items: list[Tree], size: int, rng: random.Random) -> list[list[Tree]]:
    """Group sentences of like length, at most ``size`` tokens with padding."""
    order = sorted(range(len(items)), key=lambda i: (len(items[i].words), rng.random()))
    groups, group = [], []
    for i in order:
        if group and len(items[i].words) * (len(group) + 1) > size:
            groups.append(group)
            group = []
        group.append(items[i])
    groups.append(group)
    rng.shuffle(groups)
    return groups


def tensors(
    group: list[Tree], vocabulary: Ids, memory: dict[str, tuple[int, ...]], tag_id: Ids, relation_id: Ids
) -> tuple[torch.Tensor, ...]:
    """Feature ids, tags, heads and relations of a group, -100 behind the end of a sentence."""
    longest = max(len(tree.words) for tree in group)
    ids = torch.zeros(len(group), longest, len(FEATURES), dtype=torch.long)
    out = [torch.full((len(group), longest), -100) for _ in range(3)]
    for i, tree in enumerate(group):
        n = len(tree.words)
        ids[i, :n] = torch.tensor(feature_ids(tree.words, vocabulary, memory))
        out[0][i, :n] = torch.tensor([tag_id.get(tag, 0) for tag in tree.tags])
        out[1][i, :n] = torch.tensor(tree.heads)
        out[2][i, :n] = torch.tensor([relation_id.get(r, 0) for r in tree.relations])
    return ids, *out


def evaluate(net: Net, trees: list[Tree], vocabulary: Ids, tag_id: Ids, relation_id: Ids) -> dict[str, float]:
    """Percentage of right tags, heads, and heads with relations."""
    net.eval()
    right = Counter()
    with torch.no_grad():
        for group in batches(trees, 6000, random.Random(0)):
            ids, tags, heads, relations = tensors(group, vocabulary, {}, tag_id, relation_id)
            mask = (tags >= 0)[..., None].float()
            h = net.tokens(ids, mask)
            scores = net.arcs(h)
            places = torch.arange(ids.shape[1])
            scores[:, places, places + 1] = -1e9
            scores[:, :, 1:].masked_fill_(mask[:, None, :, 0] == 0, -1e9)
            found = scores.argmax(2) - 1
            labels = net.labels(h, found).argmax(2)
            real = tags >= 0
            right["n"] += int(real.sum())
            right["tag"] += int(((net.tag(h).argmax(2) == tags) & real).sum())
            right["uas"] += int(((found == heads) & real).sum())
            right["las"] += int(((found == heads) & (labels == relations) & real).sum())
    return {k: 100 * right[k] / right["n"] for k in ("tag", "uas", "las")}


def export(
    net: Net, folder: Path, vocabulary: Ids, tags: list[str], relations: list[str], lemmas: dict[str, str]
) -> None:
    """Write integer weights (int8), their scales, biases, and the vocabulary."""
    arrays = {}

    def linear(name: str, layer: nn.Linear) -> None:
        weight = layer.weight.detach().numpy().T
        scale = np.abs(weight).max() / 127
        arrays[f"{name}.weight"] = np.rint(weight / scale).astype(np.int8)
        arrays[f"{name}.scale"] = np.float32(scale / 127)
        arrays[f"{name}.bias"] = layer.bias.detach().numpy().astype(np.float32)

    arrays["embedding"] = np.rint(net.embedding.weight.detach().clamp(-1, 1).numpy() * 127).astype(np.int8)
    for i, (wide, back) in enumerate(zip(net.wide, net.back, strict=True)):
        linear(f"wide{i}", wide)
        linear(f"back{i}", back)
    for name in ("tag", "dependent", "head", "label_dependent", "label_head", "label"):
        linear(name, getattr(net, name))
    arrays["root"] = np.rint(net.root.detach().clamp(-1, 1).numpy() * 127).astype(np.int8)
    arrays["distance"] = np.rint(net.distance.detach().numpy() * 127 * 127).astype(np.int32)
    arrays["root_label"] = net.root_label.detach().numpy().astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "syntax.npz", **arrays)
    write_names(folder, {"dilations": DILATIONS, "tags": tags, "relations": relations, "vocabulary": list(vocabulary),
                         "lemmas": lemmas})  # fmt: skip


def write_names(folder: Path, names: dict[str, Any]) -> None:
    """Write vocabulary and other names, the same bytes each time."""
    with gzip.GzipFile(folder / "syntax.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(names, ensure_ascii=False).encode())


def main() -> None:
    """Read the command line, train, and keep the weights that are best on the dev split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--words-only", action="store_true")
    options = parser.parse_args()
    lemmas = lemma_table(options.treebank / "en_ewt-ud-train.conllu.gz")
    if options.words_only:
        names = json.loads(gzip.decompress((options.output / "syntax.json.gz").read_bytes()))
        write_names(options.output, {**names, "lemmas": lemmas})
        return
    torch.manual_seed(7)
    torch.set_num_threads(options.threads)
    rng = random.Random(7)
    train, dev, test = (read(options.treebank / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "dev", "test"))
    counts = Counter(f"{name}={value}" for tree in train for word in tree.words
                     for name, value in zip(FEATURES, features_of(word), strict=True))  # fmt: skip
    least = {"word": 2, "suffix3": 4, "suffix2": 3, "prefix3": 4, "shape": 1}
    kept = sorted(key for key, n in counts.items() if n >= least[key.partition("=")[0]])
    vocabulary = {key: i for i, key in enumerate(["", "word=FORMULA", "shape=formula", *kept])}
    tags = sorted({tag for tree in train for tag in tree.tags})
    relations = sorted({relation for tree in train for relation in tree.relations})
    tag_id, relation_id = ({name: i for i, name in enumerate(names)} for names in (tags, relations))
    net = Net(len(vocabulary), len(tags), len(relations))
    decay = [p for p in net.parameters() if p.ndim > 1]
    rest = [p for p in net.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 0.02}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3)
    steps = options.epochs * len(batches(train, 3000, rng))

    def rate(step: int) -> float:  # linear warm-up, then a cosine to nothing
        return min(1.0, (step + 1) / 200) * 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    memory: dict[str, tuple[int, ...]] = {}
    word_entries = torch.tensor([key.startswith("word=") and key != "word=FORMULA" for key in vocabulary])
    best = 0.0
    for epoch in range(options.epochs):
        net.train()
        start, total = time.time(), 0.0
        for group in batches([varied(tree, rng) for tree in train], 3000, rng):
            ids, gold_tags, heads, labels = tensors(group, vocabulary, memory, tag_id, relation_id)
            ids[word_entries[ids] & (torch.rand(ids.shape) < 0.15)] = 0
            mask = (gold_tags >= 0)[..., None].float()
            h = net.tokens(ids, mask)
            scores = net.arcs(h)
            scores[:, :, 1:] = scores[:, :, 1:].masked_fill(mask[:, None, :, 0] == 0, -1e9)
            known = heads.clamp(min=-1)
            loss = (
                nn.functional.cross_entropy(scores.flatten(0, 1), torch.where(heads == -100, -100, heads + 1).flatten())
                + nn.functional.cross_entropy(net.labels(h, known).flatten(0, 1), labels.flatten())
                + 0.5 * nn.functional.cross_entropy(net.tag(h).flatten(0, 1), gold_tags.flatten())
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        scores_now = evaluate(net, dev, vocabulary, tag_id, relation_id)
        print(f"epoch {epoch + 1}: loss {total:.1f}, dev {scores_now}, {time.time() - start:.0f} s", flush=True)
        if scores_now["las"] > best:
            best = scores_now["las"]
            export(net, options.output, vocabulary, tags, relations, lemmas)
            kept_test = evaluate(net, test, vocabulary, tag_id, relation_id)
    print(f"best dev las {best:.2f}; test of the weights written {kept_test}")


if __name__ == "__main__":
    main()
