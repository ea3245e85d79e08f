# Two commands: `make demo` and `make test`. Each does its own set-up, once; a second call reuses it.
# `make test-processors` goes beyond them: it shows that the tests do not hang on the last bit of this processor.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-processors lint clean

demo: $(READY)  ## build, index and search the bundled sample; print the table
	$(BIN)/mathamr demo

test: demo lint  ## the demo, the style checks, then every test
	$(BIN)/python -m pytest

test-processors: $(READY)  ## the tests of models, indexes and systems as older processors compute
	tools/test_processors.sh $(BIN)/python

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): setup.cfg pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[archives,bm25,latex,plots,qdrant,test,text]'
	touch $@
