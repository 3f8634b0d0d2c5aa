# One command each; every target makes its own environment first (see tools/make_venv.sh).
PYTHON := .venv/bin/python
CORPUS ?=
INIT ?= pretrained
LANGUAGE ?=
VOCAB_SIZE ?= 8000
LOGDIR ?= build/quickstart
PORT ?= 6006

.PHONY: help venv quickstart test test-slow lint tensorboard

help:
	@echo "make quickstart   from raw text to a served classifier (CORPUS='path/*.txt', INIT=random)"
	@echo "make test         the test suite"
	@echo "make test-slow    the tests that it leaves out"
	@echo "make lint         ruff"
	@echo "make tensorboard  curves of LOGDIR=$(LOGDIR) on PORT=$(PORT)"
	@echo "make venv         .venv alone"

venv: .venv/.installed

.venv/.installed: requirements.txt requirements-dev.txt tools/make_venv.sh
	@bash tools/make_venv.sh

quickstart: venv
	@$(PYTHON) -m quickstart.run --init='$(INIT)' --corpus='$(CORPUS)' \
		--vocab_size='$(VOCAB_SIZE)' $(if $(LANGUAGE),--language='$(LANGUAGE)')

# A process per core, up to what fits in 8 GB; the tests of a class share models, hence loadscope.
test: venv
	$(PYTHON) -m pytest -n logical --maxprocesses=4 --dist loadscope

test-slow: venv
	$(PYTHON) -m pytest -m slow

lint: venv
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

tensorboard: venv
	@bash tools/tensorboard.sh '$(LOGDIR)' '$(PORT)'
