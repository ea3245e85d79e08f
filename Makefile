# `make demo` and `make test` need nothing but Python: they create .venv once and reuse it.
# `make docs` builds the site into build/site; `make test-processors` shows that no test depends on the last bit of this CPU.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet --numprocesses auto --dist worksteal

.PHONY: demo test test-slow test-baselines test-processors lint docs dist clean

demo: $(READY)  ## build, index and search the bundled sample; print the table
	$(BIN)/mathamr demo

test: demo lint  ## run the demo, the style checks, then the tests, a worker for each core
	$(PYTEST)

test-slow: $(READY)  ## run the tests that start clusters, and the whole battery of kills for every artifact
	$(PYTEST) -m slow

test-baselines: $(READY)  ## install Terrier, PISA and Anserini into build/baselines, and run the tests that combine them with ours
	tools/test_baselines.sh $(BIN)/python

test-processors: $(READY)  ## run the tests of models, indexes and systems with the instructions of older CPUs
	tools/test_processors.sh $(BIN)/python

lint: $(READY)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## build the documentation; warnings are errors
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -c docs . build/site
	@echo "build/site/docs/index.html"

dist: $(READY)  ## build the source distribution and, from it, the wheel, as PyPI gets them, and check them
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist
	$(BIN)/python -m twine check --strict build/dist/*

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): setup.cfg pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[answers,archives,bm25,cft,colbert,compiled,docs,hub,latex,mcp,mteb,plots,qdrant,ray,serve,test,text,watch]'
	touch $@
