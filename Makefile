# make run     the window on the demo checkpoint (without a display: the same job on the terminal)
# make test    style, types and the whole test suite, headless
# make help    all targets
# PYTHON=/path/to/python3 chooses the Python that .venv is made with.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test lint format types unit slow languages package-tools wheel test-wheel bundle deb tarball test-deb \
	test-tarball compare-builds clean distclean

PY := .venv/bin/python
# Files stay whole: what a file loads once is loaded by one worker.
WORKERS := -n 2 --dist loadfile
export PYTHON

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup:
	@sh packaging/setup.sh

setup-dev:
	@sh packaging/setup.sh --dev

run: setup ## open the window on the demo checkpoint
	@$(PY) packaging/run.py

test: lint types unit ## style, types and the whole test suite, headless

lint: setup-dev ## style and formatting
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: setup-dev ## bring the code into the project's format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: setup-dev ## static types
	$(PY) -m mypy

unit: setup-dev ## the test suite
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest -q $(WORKERS)

slow: setup-dev ## the test suite with the tests that take minutes
	QT_QPA_PLATFORM=offscreen $(PY) -m pytest -q $(WORKERS) --run-slow

languages: setup-dev ## collect the window's words for translators, compile the catalogues
	$(PY) packaging/languages.py

package-tools: setup-dev
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input -r requirements-package.lock

wheel: package-tools ## dist/: wheel and source distribution, the same bytes at every build
	$(PY) packaging/dist.py
	$(PY) -m twine check --strict dist/draftscope-*.whl dist/draftscope-*.tar.gz

test-wheel: wheel ## install the wheel into a fresh environment, run both programs, take it off
	$(PY) packaging/smoke.py dist/draftscope-*.whl

bundle: package-tools ## build/bundle/draftscope: the frozen program, a folder that needs no Python
	$(PY) packaging/bundle.py

deb: bundle ## dist/: a Debian package
	$(PY) packaging/deb.py

tarball: bundle ## dist/: the frozen program with a script that installs it, for any Linux
	$(PY) packaging/tarball.py

test-deb: deb ## install the Debian package into a bare Debian, use it, purge it (as root; lintian first)
	lintian --fail-on error,warning dist/draftscope_*.deb
	$(PY) packaging/smoke_deb.py dist/draftscope_*.deb

test-tarball: tarball ## install the tar.xz into a bare Debian, use it, take it off (as root)
	$(PY) packaging/smoke_tarball.py dist/draftscope-*-linux-*.tar.xz

compare-builds: package-tools ## build the last commit twice, at different places, and compare every byte
	$(PY) packaging/compare_builds.py

clean: ## remove caches and build products
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -print | xargs rm -rf

distclean: clean ## remove .venv too
	rm -rf .venv
