# make demo   set up and run the quickstart sweep
# make test   set up and pass the tests
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench check clean

demo: .venv/ready
	$(BIN)/wsjax sweep sweeps/quickstart.toml

test: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pytest -q

bench: .venv/ready-dev
	$(BIN)/python tests/bench.py

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf .venv results/*
