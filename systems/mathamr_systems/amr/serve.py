"""The worker: a neural AMR parser behind messages of JSON, run by the interpreter that has the parser installed.

Only this file runs there: it uses only the standard library, and runs on Python 3.8 and later. Its argument is the
number of its socket; output that the parser prints goes elsewhere.

    in      {"id": 1, "do": "load", "parser": "transition", "model": "doc-sen-conll-amr-seed42", "options": {}}
    out     {"id": 1, "ready": {"python": "3.8.18"}}
    in      {"id": 2, "do": "parse", "mode": "documents", "texts": [["a1", ["FORMULA_0 is odd.", "Why?"]]]}
    out     {"id": 2, "graphs": [["a1", "(d / document ...)"]]}          one for each text, null for no graph
    out     {"id": 2, "error": "memory", "message": "CUDA out of memory"}  or "failed", "setup"

The worker ends with its socket or with the process that started it.
"""

from __future__ import annotations

import glob
import importlib
import importlib.util
import json
import os
import platform
import re
import sys
import threading
import time
import traceback
import unicodedata
from multiprocessing.connection import Connection
from typing import Any

PLACEHOLDER = re.compile(r"(FORMULA_\d+)")
EMPTY = "(a / amr-empty)"


class Transition:
    """IBM's transition-amr-parser 0.5.4."""

    packages = ("transition-neural-parser", "torch", "numpy", "fairseq", "torch-scatter")
    module = "transition_amr_parser.parse"

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        parser = importlib.import_module(self.module).AMRParser
        prefer_cached_hub_code()
        self.window = options.pop("window", None)
        is_path = os.path.sep in model or model.endswith(".pt")
        self.parser = parser.from_checkpoint(model, **options) if is_path else parser.from_pretrained(model, **options)

    def parse(self, mode: str, texts: list[list[str]]) -> list[Any]:
        """Parse each text, a list of sentences, as one document or as one sentence."""
        tokens = [[own for own in map(self.tokens, sentences) if own] for sentences in texts]
        some = [own for own in tokens if own]  # a text without tokens would end the whole batch
        # The second value repeats one machine, that of the last document; only the annotations are each text's own.
        graphs = iter(self.annotations(mode, some) if some else ())
        return [next(graphs) if own else EMPTY for own in tokens]

    def annotations(self, mode: str, texts: list[list[list[str]]]) -> list[Any]:
        if mode == "sentences":
            return list(self.parser.parse_sentences([[t for own in text for t in own] for text in texts])[0])
        window = {"window_size": self.window[0], "window_overlap": self.window[1]} if self.window else {}
        return list(self.parser.parse_docs(texts, **window)[0])

    def tokens(self, sentence: str) -> list[str]:
        """Tokenize as the parser does, but keep placeholders whole; its tokenizer would cut FORMULA_100."""
        tokens: list[str] = []
        for piece in PLACEHOLDER.split(plain(sentence)):
            if PLACEHOLDER.fullmatch(piece):
                tokens.append(piece)
            elif piece.strip():
                tokens += self.parser.tokenize(piece)[0]
        return tokens

    @staticmethod
    def files(model: str) -> dict[str, Any]:
        """Find the files that the parser needs offline: a path, or null."""
        home = os.path.expanduser(
            os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch"))
        )
        if os.path.sep in model or model.endswith(".pt"):
            checkpoint = model
        elif model == "doc-sen-conll-amr-seed42":
            name = "both_doc+sen_trainsliding_ws400x100"
            checkpoint = os.path.join(home, "DATA/AMR3.0/models", name, "seed42/checkpoint_smatch_top5-avg.pt")
        else:
            checkpoint = os.path.join(home, "DATA/*/models/*/seed*/checkpoint_*.pt")
        fairseq = os.getenv("PYTORCH_FAIRSEQ_CACHE", os.path.join(home, "pytorch_fairseq"))
        wanted = {
            "checkpoint": checkpoint,
            "machine_config": os.path.join(os.path.dirname(checkpoint), "machine_config.json"),
            "bart_code": os.path.join(home, "hub", "pytorch_fairseq_*", "hubconf.py"),
            "bart_weights": os.path.join(fairseq, "*", "model.pt"),
        }
        return located(wanted)


class Amrlib:
    """amrlib 0.8.1 or later; it parses sentences."""

    packages = ("amrlib", "torch", "transformers", "penman")
    module = "amrlib"

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        load = importlib.import_module(self.module).load_stog_model
        self.model = load(model_dir=model or None, **options)

    def parse(self, mode: str, texts: list[list[str]]) -> list[Any]:
        """Parse each text as one sentence; null where the model returns no graph."""
        sentences = [" ".join(plain(" ".join(text)).split()) for text in texts]
        graphs = iter(self.model.parse_sents([own for own in sentences if own], add_metadata=False))
        return [next(graphs) if own else EMPTY for own in sentences]

    @staticmethod
    def files(model: str) -> dict[str, Any]:
        if not model:
            spec = importlib.util.find_spec("amrlib")
            package = os.path.dirname(str(spec.origin)) if spec else "amrlib"
            model = os.path.join(package, "data", "model_stog")
        return located({"model": os.path.join(model, "amrlib_meta.json")})


PARSERS: dict[str, Any] = {"transition": Transition, "amrlib": Amrlib}


def prefer_cached_hub_code() -> None:
    """Make torch.hub use its cached code; torch 1.13.1 would query the network for the branch."""
    if "torch" not in sys.modules:
        return
    hub = sys.modules["torch"].hub
    load = hub.load

    def load_cached(repository: str, model: str) -> Any:
        folders = sorted(glob.glob(os.path.join(hub.get_dir(), repository.replace("/", "_") + "_*")))
        return load(folders[0], model, source="local") if folders else load(repository, model)

    hub.load = load_cached


def plain(text: str) -> str:
    """Remove characters on which parsers fail: controls, lone surrogates, and white space except the space."""
    kept = (" " if letter.isspace() else letter for letter in text)
    return "".join(letter for letter in kept if unicodedata.category(letter)[0] != "C" and letter != "\ufffd")


def located(wanted: dict[str, str]) -> dict[str, Any]:
    """Return for each pattern the first file or null, and the pattern."""
    report = {}
    for name, pattern in wanted.items():
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        report[name] = {"found": paths[0] if paths else None, "at": pattern}
    return report


def examined(name: str, model: str) -> dict[str, Any]:
    """Examine a parser's environment: versions, whether it can be imported, devices, files."""
    from importlib import metadata

    parser = PARSERS[name]
    packages: dict[str, Any] = {}
    for package in parser.packages:
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            packages[package] = None
    report: dict[str, Any] = {"python": platform.python_version(), "packages": packages, "import": "", "devices": 0}
    try:
        importlib.import_module(parser.module)
    except Exception as error:
        report["import"] = f"{type(error).__name__}: {error}"
    if packages["torch"]:
        try:
            report["devices"] = importlib.import_module("torch").cuda.device_count()
        except Exception as error:
            report["import"] = report["import"] or f"{type(error).__name__}: {error}"
    report["files"] = parser.files(model)
    return report


class Server:
    def __init__(self) -> None:
        self.parser: Any = None

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request; an exception becomes an error reply."""
        kind = ""
        try:
            reply: dict[str, Any] = getattr(self, request["do"])(request)
        except Exception as error:
            traceback.print_exc()
            out_of_memory = isinstance(error, MemoryError) or "out of memory" in str(error).lower()
            kind = "memory" if out_of_memory else "setup" if request.get("do") == "load" else "failed"
            reply = {"error": kind, "message": f"{type(error).__name__}: {error}"[:2000]}
        if kind == "memory" and "torch" in sys.modules:  # only here: the exception referred to its tensors
            sys.modules["torch"].cuda.empty_cache()
        reply["id"] = request.get("id")
        return reply

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        self.parser = PARSERS[request["parser"]](request["model"], dict(request["options"]))
        return {"ready": {"python": platform.python_version()}}

    def parse(self, request: dict[str, Any]) -> dict[str, Any]:
        names = [name for name, _ in request["texts"]]
        graphs = self.parser.parse(request["mode"], [sentences for _, sentences in request["texts"]])
        if len(graphs) != len(names):
            raise ValueError(f"{len(graphs)} graphs for {len(names)} texts")
        return {"graphs": [[names[i], graphs[i]] for i in range(len(names))]}

    def check(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"report": examined(request["parser"], request["model"])}


def end_with(parent: int) -> None:
    """End when the starting process has ended, even during a parse."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def main() -> None:
    """Answer the requests until the socket is closed."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != folder]  # no modules of ours
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    connection, server = Connection(int(sys.argv[1])), Server()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(json.dumps(server.reply(request)).encode("ascii"))


if __name__ == "__main__":
    main()
