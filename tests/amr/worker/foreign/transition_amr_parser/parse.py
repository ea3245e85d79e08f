"""Behaves like transition-amr-parser 0.5.4 toward its caller, and misbehaves at certain tokens."""

import contextlib
import os
import re
import signal
import time

with contextlib.suppress(ImportError):  # there only where a test has put it
    import torch

MARKS = os.environ.get("FAKE_MARKS", "")  # a folder where each event leaves a file: what was parsed, by whom


def once(name):
    """Whether this is the first time, in whatever process."""
    try:
        os.close(os.open(os.path.join(MARKS, name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Machine:
    tokens = ()


class AMRParser:
    @classmethod
    def from_pretrained(cls, model_name, beam=1, fp16=False):
        print("self.machine_config:", model_name)
        os.write(1, b'{"id": 1, "ready": "noise of a library in C"}\n')
        if "torch" in globals():
            torch.hub.load("pytorch/fairseq", "bart.large")
        if model_name == "none":
            raise ValueError("The model_name provided in not in our library")
        with open(os.path.join(MARKS, "loaded"), "a") as loaded:
            loaded.write(f"{os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n")
        return cls()

    @classmethod
    def from_checkpoint(cls, checkpoint, beam=1, fp16=False):
        return cls.from_pretrained(os.path.basename(checkpoint), beam, fp16)

    def tokenize(self, sentence):
        tokens = re.findall(r"[0-9][0-9,.:/-]+[0-9]|[^\s.,;:?!\"'()\[\]{}/~*%-]+|[.,;:?!\"'()\[\]{}/~*%-]", sentence)
        return tokens, [(0, 0)] * len(tokens)

    def parse_sentences(self, batch, batch_size=128):
        return self._parsed([[tokens] for tokens in batch], "(s / say-01~{at}{rest})")

    def parse_docs(self, tok_sentences, window_size=300, window_overlap=200):
        return self._parsed(tok_sentences, None)

    def _parsed(self, docs, form):
        assert docs, "Did not expect empty sample"
        assert all(doc and all(doc) for doc in docs), "Did not expect empty sample"
        words = {token for doc in docs for sentence in doc for token in sentence}
        # as SentenceEncodingBART does: words and word pieces must come out equal
        assert not any(token.split() != [token] or "\ufffd" in token for token in words), "word_to_wordpiece"
        misbehave(words, len(docs))
        print("Running on batch size: " + str(len(docs)))
        machine = Machine()
        annotations = []
        for doc in docs:
            with open(os.path.join(MARKS, "parsed"), "a") as parsed:
                parsed.write(" | ".join(" ".join(sentence) for sentence in doc) + "\n")
            annotations.append(annotation(doc, form))
        return annotations, [machine] * len(docs)


def misbehave(words, size):
    if "Crash" in words:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "Exit" in words and once("exit"):
        os._exit(3)
    if "Hang" in words:
        time.sleep(3600)
    if "Fail" in words:
        raise IndexError("index 7 is out of bounds")
    if "Memory" in words and (size > 2 or "Alone" in words):
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
    if "Noise" in words:
        os.write(1, b'half a line of {"id": 2')
        print("noise")
    if "Slow" in words:
        time.sleep(float(os.environ.get("FAKE_SECONDS", "0.3")))


def annotation(doc, form):
    words = [token for sentence in doc for token in sentence]
    if "Empty" in words:
        return "(a / amr-empty)\n"
    if "Broken" in words:
        return "(b / broken"
    sentences = []
    for number, tokens in enumerate(doc, 1):
        rest = ""
        for place, token in enumerate(tokens):
            if token.startswith("FORMULA_"):
                rest += f" :op{place + 1} (f{number}_{place} / {token.lower()}~{place},{place + 1})"
        word = next((token.lower() for token in tokens if token.isalpha() and token.isascii()), "thing")
        sentences.append(f"(w{number} / {word}-01~e.{number}{rest} :quant {len(tokens)}~{number})")
    head = f"# ::tok {' '.join(words)}\n# ::alignments w1~0\n"
    if form:
        return head + sentences[0] + "\n\n"
    joined = " ".join(f":snt{number} {own}" for number, own in enumerate(sentences, 1))
    return f"{head}(d / document~0 {joined})\n\n"
