"""Behaves like amrlib 0.8.1 toward its caller."""

__version__ = "0.8.1"


class Inference:
    def __init__(self, model_dir, **options):
        self.options = sorted(options)

    def parse_sents(self, sents, add_metadata=True, disable_progress=True):
        assert isinstance(sents, list)
        return [self.graph(sentence) for sentence in sents]

    def graph(self, sentence):
        if "Fail" in sentence:
            return None  # no beam could be read as a graph
        formulas = [word.strip(".") for word in sentence.split() if word.startswith("FORMULA_")]
        rest = "".join(f'\n      :op{i} (x{i} / name :op1 "{word}")' for i, word in enumerate(formulas, 1))
        return f"(s / {sentence.split()[0].lower()}{rest})"


def load_stog_model(model_dir=None, **kwargs):
    if model_dir == "none":
        raise FileNotFoundError(2, "No such file or directory", model_dir)
    return Inference(model_dir, **kwargs)
