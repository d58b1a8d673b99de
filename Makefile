# Everything a person types here. `make demo` and `make test` need nothing but Python 3.11 to 3.14, make and a C library:
# each makes .venv and installs what it needs into it. PYTHON=python3.12 chooses another Python for it.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps
TENSORFLOW := $(shell $(PYTHON) -c "import platform, sys; print('tensorflow-cpu' if platform.machine() in ('x86_64', 'AMD64') and sys.platform != 'darwin' else 'tensorflow')")

# What checks and tests the JavaScript: the versions stand in tests/js/package-lock.json.
JS     := tests/js/node_modules/.bin
NPM    := command -v npm >/dev/null && { [ tests/js/node_modules/.package-lock.json -nt tests/js/package-lock.json ] \
	|| npm ci --silent --prefix tests/js && touch tests/js/node_modules/.package-lock.json; }

# FLAGS="--few-skips" makes a skip that tests/skips.txt does not know a failure (CI does).
FLAGS  ?=
# One more than two cores: for a fifth of their time tests wait for servers and processes.
JOBS   ?= 3
PYTEST := $(BIN)/python -m pytest $(FLAGS)
# Where something is missing a person is told what is left out; in CI (CI=true) it is a failure, or it would be green by absence.
LACK   := .ci/lack
# What `make test` leaves to other targets; `make test-matrix` and `make test-programs` run the tests with their mark.
APART  := slow or browser or torch or ray
SLOW   := $(APART) or matrix or programs

.DEFAULT_GOAL := help
.PHONY: help demo demo-alone newcomer test test-matrix test-programs test-peers test-readme oracles check fix test-torch test-ray test-ais test-browser soak fuzz mutants bench growth scale screenshots lab notebooks pairs slides docs dist release-try release

help:  ## this list
	@awk -F ':.*## +' '/^[a-z -]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- the environment -------------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))" \
		|| { echo "tarviz needs Python 3.11 to 3.14; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	@.ci/need-venv $(PYTHON)
	$(PYTHON) -m venv $(VENV)

# One stamp per set of extras; pyproject.toml is younger than it: install again.
$(STAMPS)/demo: EXTRAS := $(TENSORFLOW),demo,fast
$(STAMPS)/test: EXTRAS := $(TENSORFLOW),demo,fast,lab,deck,test
$(STAMPS)/bench: EXTRAS := $(TENSORFLOW),demo,fast,bench
$(STAMPS)/docs: EXTRAS := $(TENSORFLOW),demo,fast,lab,deck,test,docs

$(STAMPS)/demo $(STAMPS)/test $(STAMPS)/bench $(STAMPS)/docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(EXTRAS)]"
	@mkdir -p $(STAMPS) && touch $@

# What the tests hold tarviz against: packages, and the programs of Debian (where it can, apt installs them).
$(STAMPS)/oracles: pyproject.toml .ci/need $(STAMPS)/torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$(TENSORFLOW),demo,fast,lab,deck,table,near,media,medical,cloud,ais,hf,any,test,docs,oracles]"
	@for each in bsdtar:libarchive-tools nginx:nginx-light sshd:openssh-server gm:graphicsmagick node:nodejs chromium:chromium; do \
		.ci/need $${each%%:*} $${each##*:} || true; done
	@command -v npm >/dev/null && npm install --silent --no-save --prefix $(STAMPS)/azurite azurite@3.35.0 \
		|| $(LACK) "no npm, or it reaches no registry: the tests on azurite are skipped"
	@touch $@

$(STAMPS)/torch: pyproject.toml $(STAMPS)/test
	$(BIN)/python .ci/install_torch.py
	@touch $@

# ---- to begin with ---------------------------------------------------------------------------------------------------

demo: $(STAMPS)/demo  ## from tar shards to a trained model, with a report in demo/report.html
	$(BIN)/tarviz demo demo

# The first command of the README as a newcomer runs it: an environment with the demo's packages and nothing else.
demo-alone:  ## `make demo` in an environment of its own, thrown away afterwards
	rm -rf build/alone && mkdir -p build/alone
	$(MAKE) VENV=build/alone/venv build/alone/venv/.stamps/demo
	build/alone/venv/bin/tarviz demo build/alone/demo
	build/alone/venv/bin/python .ci/core_verbs.py build/alone/venv/bin/tarviz build/alone/demo
	$(if $(filter newcomer,$(MAKECMDGOALS)),,rm -rf build/alone)

# The rooms left out turn bytes into records by NumPy alone: no package that is missing here would change what they do.
newcomer: demo-alone  ## then `make test` there, without what `make oracles` installs: the rooms where a missing package matters
	$(MAKE) VENV=build/alone/venv test FLAGS="$(patsubst %,--ignore=tests/%,stores read formats runners outputs model)"
	rm -rf build/alone

test: $(STAMPS)/test  ## the tests (no browser, no torch, nothing slow, few whole programs, three cases of each)
	$(PYTEST) -q -n $(JOBS) --dist worksteal --hypothesis-profile=quick -m "not ($(SLOW))"

test-matrix: $(STAMPS)/test  ## the rest of the matrices: every tool on every tar, every chain with every number of workers, all random examples, …
	$(PYTEST) -q -n $(JOBS) --dist worksteal -m "(matrix or hypothesis) and not programs and not ($(APART))"

test-programs: $(STAMPS)/test  ## the tests that start whole programs: servers that are killed, the demo, notebooks run by nobody, …
	$(PYTEST) -q -n $(JOBS) --dist worksteal -m "programs and not ($(APART))"

test-peers: $(STAMPS)/oracles  ## readers of open_clip, diffusers, timm, … as they are (fetches their files) over the dialect, webdataset 0.2.86 and 1
	$(BIN)/python -m tests.dialects.webdataset.peers
	$(PYTEST) -q tests/dialects/webdataset/test_peers.py

oracles: $(STAMPS)/oracles  ## install all that the tests compare with (webdataset, datasets, torch, bsdtar, nginx, chromium, …)

# ---- for people who change it ----------------------------------------------------------------------------------------

check: $(STAMPS)/test  ## lint, format, types, import layers, documents, JavaScript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict tarviz
	$(BIN)/python -m pytest -q tests/typed_client.py
	$(BIN)/lint-imports
	$(BIN)/python docs/tables.py --check
	$(BIN)/python -m docs.lines --check
	@if $(NPM); then $(JS)/tsc -p .ci && $(JS)/prettier --log-level warn --check $$(git ls-files '*.mjs'); \
		else $(LACK) "no npm, or it reaches no registry: types and format of the JavaScript are not checked"; fi
	@if command -v node >/dev/null; then PYTHON=$(BIN)/python node --test --test-force-exit $$(git ls-files '*.test.mjs'); \
		else $(LACK) "node is not installed: the JavaScript tests are left out"; fi

fix: $(STAMPS)/test  ## mend what tools can mend: lint, format, the tables in the documents
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	@if $(NPM); then $(JS)/prettier --log-level warn --write $$(git ls-files '*.mjs'); \
		else echo "no npm, or it reaches no registry: the JavaScript is not formatted"; fi
	$(BIN)/python docs/tables.py --write
	$(BIN)/python -m docs.lines --write

test-readme: $(STAMPS)/test  ## every line of the README, in an environment that its install line makes of the wheel, twice
	$(PYTEST) -q -m "programs or not programs" tests/docs/test_readme.py

test-torch: $(STAMPS)/torch  ## the tests that need torch (installs its CPU build)
	$(PYTEST) -q -n $(JOBS) --dist worksteal -m "torch and not (slow or browser)"

$(STAMPS)/ray: pyproject.toml $(STAMPS)/test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[ray,ray-data]"
	@touch $@

test-ray: $(STAMPS)/ray  ## the tests on a Ray of two workers on this machine
	$(PYTEST) -q -m ray

# Other places that show our widgets (docs/hosts.md); the tests in one are left out where it cannot be had.
$(STAMPS)/browser: pyproject.toml $(STAMPS)/test
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check "voila>=0.5.8" "notebook>=7" marimo "jupyterhub>=5.3"
	-command -v npm >/dev/null && npm install --silent --no-save --prefix $(STAMPS)/proxy configurable-http-proxy@5
	@touch $@

test-ais: $(STAMPS)/test  ## the tests of AIStore on the cluster that AIS_ENDPOINT names (AIS_MAY_BREAK=1: take a target away, too), or on a small one of this machine
	$(PYTEST) -q tests/stores/test_ais.py

test-browser: $(STAMPS)/browser  ## the tests in a real browser (installs chromium where it can)
	@.ci/need chromium chromium || $(LACK) "the browser tests are skipped"
	$(PYTEST) -q -n 2 --dist loadfile -m browser

screenshots: $(STAMPS)/test  ## pictures of every surface, light and dark, wide and narrow, in docs/screenshots
	@.ci/need chromium chromium
	$(BIN)/python -m tests.browser.screenshots
	$(BIN)/python -m docs.film

soak: $(STAMPS)/torch  ## every slow test: long runs, leaks, random damage (FLAGS="--minutes 5": some of them, drawn by the date)
	$(PYTEST) -q -m "slow and not ray" --timeout 3600

fuzz: $(STAMPS)/torch  ## random damage to tars and TFRecords, random JSON, for a while
	$(PYTEST) -q -m "slow and not ray" --timeout 3600 tests/soak

mutants: $(STAMPS)/oracles  ## small faults put into the code, 100 in Python and 30 in JavaScript, drawn by the date: do tests notice? (20 minutes)
	@$(NPM) || $(LACK) "no npm, or it reaches no registry: no JavaScript is tried on a page"
	$(BIN)/python -m tests.mutants $(FLAGS)

# ---- releases --------------------------------------------------------------------------------------------------------

dist: $(STAMPS)/test  ## the wheel and the source archive in dist/, checked
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist && $(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

release-try: dist  ## both archives installed in fresh environments and tried, and what a release still lacks; nothing is tagged
	$(BIN)/python .ci/release.py --try
	$(BIN)/python .ci/sbom.py dist/tarviz.cdx.json

release: release-try  ## make release VERSION=0.2.0: version, changelog section and tag in one commit; pushing the tag publishes it
	$(BIN)/python .ci/release.py $(VERSION)

# ---- figures ---------------------------------------------------------------------------------------------------------

bench: $(STAMPS)/bench  ## measure tarviz and its peers side by side; writes bench/results.json and the table in README.md
	$(BIN)/python -m bench
	$(BIN)/python docs/tables.py --write

growth: $(STAMPS)/test  ## measure how cost grows with records, shards, members and workers; draws docs/cost.md (torch where it is there)
	$(BIN)/python -m bench._growth
	$(BIN)/python docs/growth.py

scale: $(STAMPS)/ray  ## measure what a task on a Ray cluster costs, for docs/scale.md (make fix writes the tables)
	$(BIN)/python -m bench._scale
	$(BIN)/python docs/tables.py --write

# ---- notebooks, slides, site -----------------------------------------------------------------------------------------

NOTEBOOKS := $(patsubst notebooks/%.md,build/notebooks/%.ipynb,$(wildcard notebooks/*.md))
DECKS     := $(patsubst slides/%.md,build/slides/%.html,$(wildcard slides/*.md))
PACKAGE   := $(shell find tarviz -name '*.py' -o -name '*.mjs' -o -name '*.css')

lab: $(STAMPS)/test  ## JupyterLab, open on the tour
	$(BIN)/jupyter lab $$([ "$$(id -u)" != 0 ] || echo --allow-root) notebooks/00-tour.ipynb

notebooks: $(NOTEBOOKS)  ## run every notebook; what they showed lies in build/notebooks

slides: can-torch $(DECKS)  ## make every deck, one HTML file each, in build/slides (PyTorch's slides need torch: its CPU build)

# Run again when the text or the package is younger than what it showed. Each runs in an empty folder.
build/notebooks/%.ipynb: notebooks/%.md $(PACKAGE) | $(STAMPS)/test
	$(BIN)/python -m docs.pairs --run $< -o $@

# Ray gives a node half a minute to start, whatever else the machine does: its notebook runs when the others have.
WITH_RAY := build/notebooks/90-many-machines.ipynb
$(WITH_RAY): | $(filter-out $(WITH_RAY),$(NOTEBOOKS))

build/slides/%.html: slides/%.md $(PACKAGE) | $(STAMPS)/test can-torch
	$(BIN)/python -m docs.pairs --run $< -o build/slides/$*.ipynb
	$(BIN)/tarviz deck --execute never build/slides/$*.ipynb -o $@

# Where torch cannot be had, the deck on input pipelines shows the same batches in NumPy.
.PHONY: can-torch
can-torch: $(STAMPS)/test
	-@$(BIN)/python .ci/install_torch.py --cpu

docs: $(STAMPS)/docs $(NOTEBOOKS) $(DECKS)  ## build the site in site/: README, notebooks as they ran, slides, reference; opens from the disk
	$(BIN)/python -m docs.site build/notebooks build/slides -o site
	@if command -v chromium >/dev/null; then $(BIN)/python -m docs.look site; else $(LACK) "chromium is not installed: nobody looked at the pages"; fi

pairs: $(STAMPS)/test  ## bring .md and .ipynb of notebooks and slides in step; the one saved last wins
	$(BIN)/python -m docs.pairs --write
