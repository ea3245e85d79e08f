"""Compare the own forward pass of a text encoder with transformers, in numpy and in each precision of torch.

python benchmarks/encoder_agreement.py FOLDER ../shared [--texts 1000] [--longest 64] [--few 50] [--packed FOLDER ...]

FOLDER holds a published BERT or MPNet. Texts are answers of arqmath-mini, cut to their first pieces. Each line is one
way to compute them: the largest difference of a number in a state from transformers in float32, the mean and the least
cosine of vectors of texts, and pieces a CPU second. The slow ways, numpy, bfloat16 and int8, read a few of the texts.
``--packed`` adds folders of packed weights, in float32.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel

from pyterrier_mathamr.arqmath import ARQMathCollection
from pyterrier_mathamr.model.batching import batches_by_size
from pyterrier_mathamr.model.bert import TorchBert
from pyterrier_mathamr.model.packed_bert import Float32, PackedBert, Precision
from pyterrier_mathamr.model.text_encoder import PackedEncoder, unit_rows
from pyterrier_mathamr.posts import plain_text, post_from_html

Texts = Sequence[Sequence[int]]
_CPU = torch.device("cpu")


def main() -> None:
    """Print a line for each way."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="a published encoder")
    options.add_argument("shared", type=Path, help="folder that holds arqmath-mini")
    options.add_argument("--texts", type=int, default=1000)
    options.add_argument("--longest", type=int, default=64, help="pieces of a text, special ones included")
    options.add_argument("--few", type=int, default=50, help="texts of the slow ways")
    options.add_argument("--packed", type=Path, nargs="*", default=[])
    given = options.parse_args()
    torch.set_num_threads(1)
    answers = list(ARQMathCollection(given.shared / "arqmath-mini").answers())[: given.texts]
    encoder = PackedEncoder(PackedBert(given.folder), given.folder)
    found = encoder.pieces([plain_text(post_from_html(post.id, post.body)) for post in answers])
    texts = [[encoder.head, *one.ids[: given.longest - 2], encoder.tail] for one in found]
    few = texts[:: max(1, len(texts) // given.few)][: given.few]
    expected = in_batches(transformers_states(given.folder), texts, "transformers, float32")
    of_few = [expected[texts.index(one)] for one in few]
    for precision in ("float32", "bfloat16", "int8"):
        own, right = (texts, expected) if precision == "float32" else (few, of_few)
        compare(states(given.folder, precision), own, right, f"torch, {precision}")
    compare(encoder.network.states, few, of_few, "numpy, float32")
    for folder in given.packed:
        compare(states(folder, "float32"), texts, expected, f"torch, float32, weights of {folder.name}")


def states(folder: Path, precision: Precision) -> Callable[[Texts], list[Float32]]:
    """Load the own forward pass."""
    return TorchBert(folder, precision, _CPU).states


def transformers_states(folder: Path) -> Callable[[Texts], list[Float32]]:
    """Load the model of transformers as a function that pads texts to the longest."""
    model = AutoModel.from_pretrained(folder, use_safetensors=True, add_pooling_layer=False).eval()

    @torch.inference_mode()
    def compute(texts: Texts) -> list[Float32]:
        lengths = torch.tensor(list(map(len, texts)))
        there = torch.arange(int(lengths.max())) < lengths[:, None]
        ids = torch.full(there.shape, model.config.pad_token_id)
        ids[there] = torch.tensor([piece for one in texts for piece in one])
        found = model(ids, attention_mask=there.long()).last_hidden_state.numpy()
        return [found[i, : len(one)] for i, one in enumerate(texts)]

    return compute


def in_batches(compute: Callable[[Texts], list[Float32]], texts: Texts, name: str) -> list[Float32]:
    """Compute the states of texts, and print how many a CPU second."""
    found: list[Float32] = [np.empty(0, np.float32)] * len(texts)
    start = time.process_time()
    for members in batches_by_size(list(map(len, texts)), 1024):
        for i, rows in zip(members, compute([texts[i] for i in members]), strict=True):
            found[i] = rows
    pieces = sum(map(len, texts))
    rate = pieces / (time.process_time() - start)
    length = pieces / len(texts)
    print(f"{name}: {rate:.0f} pieces a CPU second; {len(texts)} texts of {length:.0f} pieces in the mean", flush=True)
    return found


def compare(compute: Callable[[Texts], list[Float32]], texts: Texts, expected: list[Float32], name: str) -> None:
    """Print how far states and vectors are from the expected ones."""
    found = in_batches(compute, texts, name)
    most = max(float(np.abs(own - right).max()) for own, right in zip(found, expected, strict=True))
    vectors = [unit_rows(np.stack([rows.mean(axis=0) for rows in some])) for some in (found, expected)]
    cosines = (vectors[0] * vectors[1]).sum(axis=1)
    number = float(np.abs(vectors[0] - vectors[1]).max())
    print(f"    states within {most:.1e}, vectors {number:.1e}; cosine {cosines.mean():.6f}, least {cosines.min():.6f}")


if __name__ == "__main__":
    main()
