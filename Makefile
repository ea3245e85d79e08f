# `make demo` and `make test` need nothing but Python: they create .venv once, install what they need, and reuse it.
# The other targets use what `make test` installed. Give VENV=FOLDER to use another environment: only `demo` and `test`
# install anything into it.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Installing without bytecode takes half as long; Python compiles what it imports.
PIP    := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal

DEMO   := $(VENV)/.demo
TEST   := $(VENV)/.test
ifeq ($(origin VENV),file)
NEEDED := $(TEST)
endif

.PHONY: demo test test-slow test-baselines test-processors lint docs dist clean

demo: $(DEMO)  ## search the bundled sample, and show why
	$(BIN)/mathamr demo

test: $(TEST)  ## run the style checks, then the tests, a worker for each core
	$(MAKE) lint
	$(PYTEST)

test-slow: $(NEEDED)  ## run the tests that start clusters, and the whole battery of kills for every artifact
	$(PYTEST) -m slow

test-baselines: $(NEEDED)  ## install Terrier, PISA and Anserini into build/baselines, and run the tests that combine them with ours
	tools/test_baselines.sh $(BIN)/python

test-processors: $(NEEDED)  ## run the tests of models, indexes and systems with the instructions of older CPUs
	tools/test_processors.sh $(BIN)/python

lint: $(NEEDED)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(NEEDED)  ## build the documentation; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs . build/site
	@echo "build/site/docs/index.html"

dist: $(NEEDED)  ## build the source distributions and, from them, the wheels, as PyPI gets them, and check them
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist
	$(BIN)/python -m build --outdir build/dist systems
	$(BIN)/python -m twine check --strict build/dist/*

clean:  ## remove .venv and caches
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO): setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) '.[serve]'
	touch $@

$(TEST): setup.cfg pyproject.toml constraints.txt systems/setup.cfg | $(BIN)/python
	$(PIP) '.[archives,compiled,docs,hub,mcp,plots,qdrant,ray,serve,test,text,watch]' \
	  --editable './systems[answers,cft,colbert,mteb]'
	touch $(DEMO) $@
