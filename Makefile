# Every target works on a machine with Python 3.10 or newer and make: the environment is made on first use.
PYTHON ?= python3
SHARED ?= ../shared
DEMO   ?= tests/fixtures/incidents/four-cards-drop-out
# score: IDS=FILE limits the run to the case ids in FILE, one a line; SCORE_FLAGS adds limits (--min-top1 90 ...)
IDS    ?=
SCORE_FLAGS ?=
BENCH_FLAGS ?=

VENV  := .venv
STAMP := $(VENV)/.installed
BIN   := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test score bench clean

help:
	@echo "make demo   analyse the incident in $(DEMO) and write build/report.html"
	@echo "make test   lint, types and tests"
	@echo "make score  accuracy over the labelled incidents in $(SHARED)/incidents (IDS=FILE for some of them)"
	@echo "make bench  speed, as ratios within one run"
	@echo "make clean  remove what these targets made"

$(STAMP): pyproject.toml hatch_build.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "crashcart needs Python 3.10 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	    { echo "this Python has no venv module (on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

.PHONY: .venv
.venv: $(STAMP)

demo: $(STAMP)
	@test -e '$(DEMO)' || { echo "no such incident: $(DEMO) (name one: make demo DEMO=DIR)" >&2; exit 1; }
	@mkdir -p build
	$(BIN)/crashcart analyze --fail-on never '$(DEMO)'
	$(BIN)/crashcart analyze --fail-on never --format html -o build/report.html '$(DEMO)'
	@echo "The same report as a page: build/report.html"

test: $(STAMP)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q -n auto --dist loadfile

score: $(STAMP)
	@test -f '$(SHARED)/tools/score.py' && test -d '$(SHARED)/incidents' || \
	    { echo "no labelled incidents in $(SHARED): they are no part of this repository (make score SHARED=DIR)" >&2; exit 1; }
	$(BIN)/python '$(SHARED)/tools/score.py' --cases '$(SHARED)/incidents' --causes '$(SHARED)/causes.yaml' \
	    $(if $(IDS),--ids '$(IDS)') $(SCORE_FLAGS) \
	    --cmd '$(CURDIR)/$(BIN)/crashcart analyze --format json {inputs}'

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)

clean:
	rm -rf $(VENV) .build build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find analyzer tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
