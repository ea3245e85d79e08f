"""`MathAMR`: a trained model, its files, the identity of its vectors, and how its transformers encode a frame.

::

    config.json          {"format": 1, "config": {…}, "vocabulary": <hash>, "weights": <sha256 of the file>,
                          "vocabulary_file": <sha256 of the file>, "checksum": <of all of the above>}
    vocabulary.json.gz   labels and relations, see ``graph.Vocabulary``
    weights.safetensors  parameters and buffers of the network, float32 or float16
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyterrier as pt

from pyterrier_mathamr._common.errors import ConfigError, MathAMRError
from pyterrier_mathamr._common.frames import encoded_values, given_values
from pyterrier_mathamr._common.records import parse_json
from pyterrier_mathamr._common.types import GraphPart
from pyterrier_mathamr.explain import Explanation, QueryRow, read_asked
from pyterrier_mathamr.explain.maxsim import explain_maxsim
from pyterrier_mathamr.graph import GraphError, MathAMRGraph, Vocabulary
from pyterrier_mathamr.store import StoreError, file_sum, new_folder, read_signed, signed

from .batching import choose_device
from .config import RELATIONAL_CONV, MathAMRConfig, conv_name, is_known_conv
from .encoding import Embeddings, encode_in_batches, tensors_of, vocabulary_of
from .errors import ModelFileError, UnsafeModelError
from .exact import ScoreWeights, legible, row_kinds
from .saving import (
    CONFIG,
    DEFAULT_MODEL,
    WEIGHTS,
    SavedModel,
    check_new_folder,
    find_saved,
    folder_name,
    not_finite,
    other_shapes,
    pack_weights,
    read_description,
    read_weights,
    stored_dtype,
    unreadable,
    weights_data,
)
from .text_encoder import TextEncoder, encoder_of, unit_rows
from .transformers import Columns, DocEncoder, PostRows, QueryEncoder, Side, TextScorer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from .packed_bert import Float32


_FORMAT, _VOCABULARY = 1, "vocabulary.json.gz"
_LARGEST_CONFIG = 1 << 20  # bytes; real ones have 2,000


@dataclass(frozen=True)
class ModelManifest:
    """The content of ``config.json`` of a MathAMR."""

    config: MathAMRConfig
    vocabulary: str  # its hash
    weights: str  # sha256 of the bytes of weights.safetensors

    @cached_property  # every query needs it
    def identity(self) -> str:
        """Sha256 of configuration, vocabulary and weights, 64 hexadecimal digits."""
        parts = json.dumps([self.config.essence, self.vocabulary, self.weights], sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()


def _read_manifest(folder: Path, conv: type[Any] | None = None) -> ModelManifest:
    """Read and check ``config.json``, and that the other files are there; ``conv`` is the class that it names."""

    def load(path: Path) -> dict[str, Any]:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        content: dict[str, Any] = parse_json(path.read_bytes())
        return content

    def read(content: dict[str, Any]) -> ModelManifest:
        options = dict(content["config"])
        named = options.get("conv", RELATIONAL_CONV)
        if conv is not None and conv_name(conv) == named:
            options["conv"] = conv
        elif conv is not None or not is_known_conv(named):
            advice = f"to trust that class, give it as MathAMR.from_pretrained({str(folder)!r}, conv=…)"
            raise UnsafeModelError(folder / CONFIG, f"its layers are of the class {named!r:.80}; {advice}")
        return ModelManifest(MathAMRConfig.from_dict(options), str(content["vocabulary"]), str(content["weights"]))

    manifest = read_description(folder / CONFIG, _FORMAT, "model description", read, load)
    for name in (_VOCABULARY, WEIGHTS):
        if not (folder / name).is_file():
            raise ModelFileError(folder / name, "the file is missing")
    return manifest


def _read_vocabulary(folder: Path, manifest: ModelManifest) -> Vocabulary:
    try:
        vocabulary = Vocabulary.load(folder / _VOCABULARY)
    except (GraphError, OSError) as error:
        raise ModelFileError(folder / _VOCABULARY, str(error)) from error
    if vocabulary.hash != manifest.vocabulary:
        raise ModelFileError(folder / _VOCABULARY, "the vocabulary is not the one the model was trained with")
    return vocabulary


class MathAMR(SavedModel):
    """A MathAMR+ model: graphs to one unit vector for each virtual node (MathAMR+, sections 3.3 and 3.5.1).

    Args:
        config: its options.
        vocabulary: of labels and relations.
        weights: parameters and buffers of the network, by name.
        text: the text encoder of a model with text features, such as one with a cache; by default the configuration's
            ``text_model``.

    Example::

        model = mathamr.MathAMR.from_pretrained()
        encode = mathamr.GraphBuilder() >> model.doc_encoder()
    """

    DESCRIPTION = CONFIG

    def __init__(
        self,
        config: MathAMRConfig,
        vocabulary: Vocabulary,
        weights: Mapping[str, Tensor],
        *,
        text: TextEncoder | None = None,
    ) -> None:
        self.config = config
        self.text = text or TextEncoder(config.text.text_model)
        self._folder: Path | None = None
        self._vocabulary: Vocabulary | None = vocabulary
        self._weights: dict[str, Tensor] | None = dict(weights)
        self._manifest: ModelManifest | None = None
        self._encoders: dict[str, nn.Module] = {}

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path = DEFAULT_MODEL,
        *,
        text: TextEncoder | None = None,
        conv: type[nn.Module] | None = None,
    ) -> MathAMR:
        """Open a model; only its description is read until something is encoded.

        Args:
            name_or_path: the name of a bundled model, ``mathamr-plus-text``, ``mathamr-plus-mini`` or
                ``mathamr-plus-text-large``, which needs ``mathamr-mpnet``; a folder that :meth:`save` wrote; or
                ``hf:organization/name`` for a model on the Hugging Face hub (extra ``hub``).
            text: the text encoder of a model with text features, by default the ``text_model`` of the folder's
                configuration, which is loaded from the hub or from inside the folder, never from another path.
            conv: the class of the layers, if it is neither this package's nor in ``torch_geometric.nn``, from which
                alone a model's files can have a class imported.

        Raises:
            ModelNotFoundError: there is no such model, or the hub cannot be reached.
            ModelFileError: a file is missing or damaged. UnsafeModelError: ``text_model`` is another path, or the
            layers are of a class that is not ``conv``. ConfigError: torch-geometric has no such class.
            MissingExtraError: torch-geometric is needed and cannot be imported.
        """
        folder = find_saved(name_or_path)
        manifest = _read_manifest(folder, conv)
        if manifest.config.conv != RELATIONAL_CONV:
            from .networks import convolution_of

            convolution_of(manifest.config)  # refused now, not when something is encoded
        model = cls.__new__(cls)
        model.config, model._folder, model._manifest = manifest.config, folder.absolute(), manifest
        model._vocabulary, model._weights, model._encoders = None, None, {}
        model.text = text or TextEncoder(encoder_of(manifest.config, model._folder))
        return model

    @classmethod
    def untrained(
        cls, config: MathAMRConfig, graphs: Sequence[MathAMRGraph], *, text: TextEncoder | None = None
    ) -> MathAMR:
        """Build the model that training on these graphs starts from.

        Args:
            config: its options. With ``features="text"``, ``layers=0`` and ``projection=text_dimension`` its vectors
                are the text encoder's own.
            graphs: of the training posts, which determine the vocabulary and the directions or words of text.
            text: the text encoder of a model with text features; by default the configuration's ``text_model``.
        """
        from .networks import random_network, starting_weights

        vocabulary = vocabulary_of(graphs, config)
        text = text or TextEncoder(config.text.text_model)
        encoder = random_network(config, vocabulary)
        if config.text.features != "lookup":
            tensors = tensors_of(graphs, vocabulary, config, text)
            encoder.load_state_dict(starting_weights(config, vocabulary, graphs, tensors, text), strict=False)
        return cls(config, vocabulary, encoder.state_dict(), text=text)

    def save(self, path: str | Path, *, dtype: str | None = None) -> None:
        """Write the model to a new folder, atomically.

        Args:
            path: a folder that does not exist yet.
            dtype: ``float32``, or ``float16`` for half the size, which changes the weights by up to 0.05 %. By default
                the dtype of the files that the model was opened from, so that a copy has the same :attr:`identity`;
                else ``float32``.

        Raises:
            ConfigError: the folder exists, or another dtype.
            WriteError: the disk is full or read-only, or a permission is missing; nothing is left behind.
        """
        target = check_new_folder(path)
        weights = pack_weights(self.weights(), dtype or stored_dtype(self._folder))
        manifest = ModelManifest(self.config, self.vocabulary.hash, hashlib.sha256(weights).hexdigest())
        with new_folder(target) as unfinished:
            self.vocabulary.save(unfinished / _VOCABULARY)
            (unfinished / WEIGHTS).write_bytes(weights)
            content = {
                "format": _FORMAT,
                "config": manifest.config.to_dict(),
                "vocabulary": manifest.vocabulary,
                "weights": manifest.weights,
                "vocabulary_file": file_sum(unfinished / _VOCABULARY).sha256,
            }
            (unfinished / CONFIG).write_bytes(signed(content))

    @classmethod
    def faults(cls, folder: Path, conv: type[Any] | None = None) -> Iterator[MathAMRError]:
        """Read a saved model, compare every checksum, and yield the faults.

        Args:
            folder: of the model.
            conv: the class of its layers, as in :meth:`from_pretrained`.
        """

        def named(error: MathAMRError | OSError, path: Path) -> MathAMRError:
            if isinstance(error, ModelFileError):
                return error
            if isinstance(error, OSError):
                return unreadable(path, error)
            return ModelFileError(path, error.reason if isinstance(error, StoreError) else str(error))

        try:
            manifest = _read_manifest(folder, conv)
            content = read_signed(folder / CONFIG)
            if set(content) != {"format", "config", "vocabulary", "weights", "vocabulary_file"}:
                raise ModelFileError(folder / CONFIG, "a key is missing or unknown")
        except (MathAMRError, OSError) as error:
            yield named(error, folder / CONFIG)
            return
        for name, expected in ((WEIGHTS, manifest.weights), (_VOCABULARY, content["vocabulary_file"])):
            try:
                if file_sum(folder / name).sha256 != expected:
                    yield ModelFileError(folder / name, "its content was changed since it was written")
                elif name == _VOCABULARY:
                    _read_vocabulary(folder, manifest)
            except (MathAMRError, OSError) as error:
                yield named(error, folder / name)

    def verify(self) -> None:
        """Read the model's files and compare every checksum; for an unsaved model, do nothing.

        Raises:
            ModelFileError: the first fault; ``mathamr verify`` lists all of them.
        """
        if self._folder is not None:
            conv = self.config.conv
            for fault in self.faults(self._folder, conv if isinstance(conv, type) else None):
                raise fault

    @property
    def reads(self) -> frozenset[GraphPart]:
        """The parts of a graph that vectors depend on, of ``text``, ``trees`` and ``amr``.

        ``GraphBuilder(reads=model.reads)`` builds no others.
        """
        return self.config.reads

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels and relations by number."""
        if self._vocabulary is None:
            self._vocabulary = _read_vocabulary(*self._source())
        return self._vocabulary

    @property
    def identity(self) -> str:
        """Sha256 of configuration, vocabulary and weights, equal for a model and its saved copy."""
        if self._manifest is None:
            digest = hashlib.sha256(pack_weights(self.weights())).hexdigest()
            self._manifest = ModelManifest(self.config, self.vocabulary.hash, digest)
        return self._manifest.identity

    @cached_property
    def vectors_by(self) -> str:
        """The identity of the model's vectors, such as ``mathamr-plus-mini@0123456789abcdef``.

        Before the ``@`` is the name of the model's folder or of its place on the hub, or ``unsaved``; after it is the
        beginning of a hash of configuration, vocabulary and weights. A saved copy of a model has the same hash, and so
        has one with other score weights, which do not change vectors.
        """
        whole = self.identity
        plain = self.config.replace(kind_weights="none", document_blend="none", kind_means=False)
        if self._manifest is not None and plain != self.config:
            whole = ModelManifest(plain, self._manifest.vocabulary, self._manifest.weights).identity
        return f"{folder_name(self._folder)}@{whole[:16]}"

    @property
    def score_weights(self) -> ScoreWeights | None:
        """The weights of query rows and document vectors in a score; ``None`` for plain MaxSim."""
        return ScoreWeights.of(self.config)

    def with_score_weights(self, weights: ScoreWeights) -> MathAMR:
        """Return a model that encodes as this one does and scores with ``weights``; see :func:`fit_score_weights`."""
        kinds = tuple(map(legible, (weights.formula, weights.sentence, weights.document)))
        blend = legible(weights.blend) if weights.blend else "none"
        config = self.config.replace(kind_weights=kinds, document_blend=blend)
        return MathAMR(config, self.vocabulary, self.weights(), text=self.text)

    def weights(self) -> dict[str, Tensor]:
        """Return the network's parameters and buffers by name, float32 on the CPU."""
        if self._weights is None:
            folder, manifest = self._source()
            layers = self.config.layers
            self._weights = read_weights(folder / WEIGHTS, manifest.weights, CONFIG, layers, self._build)
        return self._weights

    def encoder(self, device: str | None = None) -> nn.Module:
        """Return the network in evaluation mode on ``device`` (see :meth:`encode`), built on first use."""
        chosen = choose_device(device)
        if str(chosen) not in self._encoders:
            weights = self.weights()  # first: this checks that the configuration asks for no larger ones
            encoder = self._build()
            encoder.load_state_dict(weights)
            self._encoders[str(chosen)] = encoder.to(chosen).eval()
        return self._encoders[str(chosen)]

    def encode(
        self, graphs: Sequence[MathAMRGraph], *, device: str | None = None, verbose: bool = False
    ) -> list[Embeddings]:
        """Encode posts; the other posts of a batch change vectors by less than 1e-5 (docs/how-it-works.md).

        Args:
            graphs: of posts.
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            verbose: show progress.

        Returns:
            For each graph float32 ``[n, d]``, rows of unit length: formulas, sentences, document.
        """
        tensors = list(tensors_of(graphs, self.vocabulary, self.config, self.text))
        width = self.config.projection
        return encode_in_batches(self.encoder(device), tensors, choose_device(device), width, verbose=verbose)

    def encode_queries(
        self, graphs: Sequence[MathAMRGraph], *, device: str | None = None, verbose: bool = False
    ) -> list[Embeddings]:
        """Encode queries as :meth:`encode` does; a model of only text computes in float32, without torch.

        Args:
            graphs: of queries.
            device: where to compute. The default is the CPU for a model of only text.
            verbose: show progress.
        """
        text = self.text.for_queries
        if not self.config.text_alone or text is self.text or device not in (None, "cpu"):
            return self.encode(graphs, device=device, verbose=verbose)
        posts = list(tensors_of(graphs, self.vocabulary, self.config, text))
        return [unit_rows(np.asarray(post.features, np.float32) @ self._projection.T) for post in posts]

    def doc_encoder(
        self, *, device: str | None = None, batch_size: int | None = None, verbose: bool = False
    ) -> DocEncoder:
        """Return a transformer that adds ``doc_embs`` and ``formula_ids`` to rows with ``graph``.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            batch_size: documents that an indexing pipeline encodes together; by default 64, and 1,024 of a model that
                reads text.
            verbose: show progress.
        """
        return DocEncoder(self, device=device, batch_size=batch_size, verbose=verbose)

    def query_encoder(
        self, *, device: str | None = None, batch_size: int | None = None, verbose: bool = False
    ) -> QueryEncoder:
        """Return a transformer that adds ``query_embs`` and ``query_formula_ids`` to rows with ``query_graph``.

        Args:
            device: where to compute; by default CUDA if there is a GPU, else the CPU, and the CPU for a model of only
                text.
            batch_size: no effect on queries: all queries of a frame are encoded together.
            verbose: show progress.
        """
        return QueryEncoder(self, device=device, batch_size=batch_size, verbose=verbose)

    def text_scorer(
        self, *, device: str | None = None, batch_size: int | None = None, verbose: bool = False
    ) -> TextScorer:
        """Return a transformer that scores rows with ``query_graph`` and ``graph`` by MaxSim, without an index.

        Args:
            device: where to compute; ``None`` for CUDA if there is a GPU, else the CPU.
            batch_size: no effect on a ranking: all its documents are encoded together, 2,048 at a time.
            verbose: show progress.
        """
        return TextScorer(self, device=device, batch_size=batch_size, verbose=verbose)

    def post_rows(self, *, device: str | None = None, verbose: bool = False) -> GraphRows:
        """Return how the transformers encode the graphs of a frame on ``device``; ``verbose`` shows progress."""
        return GraphRows(self, device, verbose)

    @cached_property
    def _projection(self) -> Float32:
        """P of a model of only text (:mod:`.networks`), float32 ``[d_p, d_text]``, read without torch."""
        projection: Float32
        if self._weights is not None:
            projection = self._weights["text.project.weight"].detach().float().cpu().numpy()
            return projection
        from safetensors import SafetensorError
        from safetensors.numpy import load

        folder, manifest = self._source()
        path, name = folder / WEIGHTS, "text.project.weight"
        try:
            weights = load(weights_data(path, manifest.weights, CONFIG))
        except (SafetensorError, KeyError) as error:  # numpy lacks some types of numbers
            raise unreadable(path, error) from error
        shape = self.config.projection, self.config.text.text_dimension
        if {key: matrix.shape for key, matrix in weights.items()} != {name: shape}:
            raise other_shapes(path, CONFIG)
        if not np.isfinite(weights[name]).all():
            raise not_finite(path, name)
        projection = weights[name].astype(np.float32)
        return projection

    def _build(self) -> nn.Module:
        from .networks import network

        return network(self.config, len(self.vocabulary.nodes), len(self.vocabulary.relations))

    def _source(self) -> tuple[Path, ModelManifest]:
        if self._folder is None or self._manifest is None:
            raise ConfigError("weights", None, "a model from MathAMR.from_pretrained or Trainer.fit")
        return self._folder, self._manifest

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be rebuilt; a model opened from a folder is opened again."""
        kept = {**self.__dict__, "_encoders": {}}
        kept.pop("_projection", None)
        return kept if self._folder is None else {**kept, "_vocabulary": None, "_weights": None}


class GraphRows(PostRows):
    """How a `MathAMR` encodes: ``graph`` of documents, ``query_graph`` of queries."""

    label = "MathAMR"
    doc_columns = ("doc_embs", "formula_ids", "doc_model")

    def __init__(self, model: MathAMR, device: str | None, verbose: bool) -> None:
        self._model, self._device, self._verbose = model, device, verbose
        self._weights = model.score_weights
        self.batch_size = 1024 if model.config.text.features == "text" else 64
        weighing = () if self._weights is None else ("query_weights", "query_document_weight")
        self.query_columns = ("query_embs", "query_formula_ids", "query_model", *weighing)

    def check(self, frame: pd.DataFrame, side: Side, stage: pt.Transformer) -> None:
        if side == "ranking":
            pt.validate.result_frame(frame, extra_columns=["query_graph", "graph"], context=stage)
        else:
            needed = ["graph"] if side == "documents" else ["qid", "query_graph"]
            pt.validate.columns(frame, includes=needed, context=stage)

    def read_queries(self, frame: pd.DataFrame) -> dict[Any, MathAMRGraph]:
        return given_values(frame, "query_graph")

    def key(self, queries: Sequence[MathAMRGraph]) -> Hashable:
        model = self._model
        return model.identity, model.text, self._device, tuple(replace(graph, id="") for graph in queries)

    def of_queries(self, queries: Sequence[MathAMRGraph]) -> list[dict[str, Any]]:
        encoded: list[dict[str, Any]] = []
        for graph, rows in zip(queries, self._encode_queries(queries), strict=True):
            ids = np.array(self._formula_ids(graph), dtype=object)  # of the columns q…, others copy arrays, no lists
            columns = {"query_embs": rows, "query_formula_ids": ids, "query_model": self._model.vectors_by}
            if self._weights is not None:
                columns["query_weights"] = self._row_weights(graph, len(rows))
                columns["query_document_weight"] = float(self._weights.blend)
            encoded.append(columns)
        return encoded

    def documents(self, frame: pd.DataFrame, *, of_ranking: bool = False) -> Columns:
        frame = frame if "docno" in frame.columns else frame.assign(docno=range(len(frame)))
        encode = partial(self._model.encode, device=self._device, verbose=self._verbose)
        graphs, vectors = encoded_values(frame, "graph", encode, "docno")
        docnos = frame["docno"].tolist()
        ids = [self._formula_ids(graphs[docno]) for docno in docnos]
        embeddings = [vectors[docno] for docno in docnos]
        return {"doc_embs": embeddings, "formula_ids": ids, "doc_model": self._model.vectors_by}

    def explain(self, query: QueryRow, docno: str | None) -> Explanation:
        asked = read_asked(query, docno, "MathAMR scorer", ["query_graph", "graph"])
        query_graph, graph = asked.row["query_graph"], asked.row["graph"]
        [query_rows] = self._encode_queries([query_graph])
        [rows] = self._model.encode([graph], device=self._device, verbose=self._verbose)
        explanation = explain_maxsim(
            query_graph,
            query_rows,
            graph,
            rows,
            query_formula_ids=self._formula_ids(query_graph),
            formula_ids=self._formula_ids(graph),
            query_weights=self._row_weights(query_graph, len(query_rows)),
            query_document_weight=self._weights.blend if self._weights else None,
        )
        return replace(explanation, docno=asked.docno)

    def _encode_queries(self, graphs: Sequence[MathAMRGraph]) -> list[Embeddings]:
        """Encode queries; one without text has no vectors, float32 ``[0, d]``."""
        filled = [graph for graph in graphs if not graph.is_empty]
        encoded = iter(self._model.encode_queries(filled, device=self._device, verbose=self._verbose))
        none = np.empty((0, self._model.config.projection), np.float32)
        return [none if graph.is_empty else next(encoded) for graph in graphs]

    def _formula_ids(self, graph: MathAMRGraph) -> list[str]:
        """List the ids in the order of the rows; a model without formulas has no such rows."""
        return list(graph.formula_ids) if self._model.config.formulas != "none" else []

    def _row_weights(self, graph: MathAMRGraph, rows: int) -> npt.NDArray[np.float64] | None:
        """Return the weight of each row of a query, float64 ``[q]``; ``None`` if the model has none."""
        if self._weights is None:
            return None
        return self._weights.of_rows(row_kinds(self._model.config, graph, rows))
