# Two commands: `make demo` and `make test`. Each does its own set-up, once; a second call reuses it.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint clean

demo: $(READY)  ## build, index and search the bundled sample; print the table
	$(BIN)/mathamr demo

test: demo lint  ## the demo, the style checks, then every test
	$(BIN)/python -m pytest

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
