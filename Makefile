# Everything that a person or CI does with this repository; `make` alone lists it.
# All paths are relative, so that the repository can be in a folder with spaces in its name.

# Interpreter of a new .venv; empty: the first suitable one on the PATH.
PYTHON ?=
# More arguments for pytest: make test PYTEST_ARGS='-m slow'
PYTEST_ARGS ?=
# Duration of fuzzing, and the seed of everything random: make nightly FUZZ_SECONDS=7200 SEED=7
FUZZ_SECONDS ?= 600
SEED ?= $(shell date +%s)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Never install outside .venv, even if it is broken.
export PIP_REQUIRE_VIRTUALENV = 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help audit release man wheels wheelhouse demo test coverage nightly fuzz lint format bench docs site environment package-test newest oldest clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; \
	  do printf '%-20s %s\n' "$$target" "$$text"; done

demo: .venv/.run .venv/.kernels ## set up Vani, then show a slow run, its cause, and the run after one line
	@.venv/bin/vani demo

PYTEST = .venv/bin/python -m pytest -n auto --maxprocesses 8 --dist worksteal

# The linters keep one core busy for as long as a sixth of the tests take.
test: .venv/.test .venv/.kernels ## set up the tools, then run the linters and the tests
	@mkdir -p build
	@$(MAKE) --no-print-directory lint >build/lint.log 2>&1 & linters=$$!; \
	$(PYTEST) $(PYTEST_ARGS); tests=$$?; \
	wait $$linters || { cat build/lint.log; exit 1; }; exit $$tests

coverage: .venv/.test .venv/.kernels ## run the tests again and measure their coverage
	$(PYTEST) --cov --cov-report=
	.venv/bin/python .ci/coverage_of_folders.py --least 90 vani analyzers advisors schema

nightly: SEED := $(SEED)
nightly: FUZZ_SECONDS = 1800
nightly: lint .venv/.kernels ## audit, release, slow tests, random runs, fuzzing and coverage; prints its seed
	@echo "Repeat this night with: make nightly SEED=$(SEED)"
	$(MAKE) --no-print-directory audit release
	NIGHTLY_SEED=$(SEED) $(PYTEST) -m slow --hypothesis-seed=$(SEED)
	$(MAKE) --no-print-directory fuzz SEED=$(SEED)
	$(MAKE) --no-print-directory coverage

fuzz: .venv/.test .venv/.kernels ## damage inputs at random and check that Vani handles them
	.venv/bin/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS) --seed $(SEED)

lint: .venv/.test ## ruff, mypy and the import contracts
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: .venv/.test ## format the code and apply ruff's safe fixes
	.venv/bin/ruff check --fix --exit-zero .
	.venv/bin/ruff format .

bench: .venv/.test .venv/.kernels ## measure speed and memory
	.venv/bin/python -m benchmarks

docs: .venv/.test .venv/.kernels ## regenerate pages, schemas and shown output from the code
	.venv/bin/python -m vani.schema.document
	.venv/bin/python docs/generators/profile.py
	.venv/bin/python docs/generators/rules.py
	.venv/bin/python docs/generators/machines.py
	.venv/bin/python docs/generators/glossary.py docs/glossary.md
	UPDATE_DOCS=1 .venv/bin/python -m pytest --quiet -m "slow or not slow" tests/test_docs.py tests/test_notebooks.py tests/test_gallery.py

site: .venv/.test ## build the site: these pages and the reference of the library
	.venv/bin/python -m sphinx --fresh-env --fail-on-warning --keep-going --nitpicky --quiet -c docs . build/site
	@echo "Open build/site/index.html"

man: .venv/.test ## build the manual pages: build/man/vani.1
	.venv/bin/python -m sphinx -b man --quiet -c docs . build/man
	@echo "Read it with: man -l build/man/vani.1"

wheels: ## wheels with compiled kernels for Linux on x86-64 and arm64: build/wheels
	@bash .ci/wheels

wheelhouse: .venv/.created ## everything that an installation without network needs: build/wheelhouse
	@rm -rf build/wheelhouse
	.venv/bin/python -m pip wheel --quiet --wheel-dir build/wheelhouse '.[plot]'
	@echo "There: python3 -m pip install --no-index --find-links FOLDER 'vani-io[plot]'"

package-test: ## build sdist and wheel, install the wheel elsewhere and run its demo
	@bash .ci/package-test

audit: ## check the dependencies for known vulnerabilities
	@bash .ci/audit

release: ## build all files of a release, twice, into build/release
	@bash .ci/release

newest: ## run the tests that depend on the Python version, on the newest one
	@bash .ci/newest

oldest: ## run the tests that depend on library versions, with the oldest supported ones
	@bash .ci/oldest

clean: ## remove what building and testing left behind
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## the same, and the virtual environment
	rm -rf .venv

environment: .venv/.created

# A suitable .venv is kept. One whose prefix equals its base is not an environment (its pyvenv.cfg is
# lost), and pip would install into the system's Python. `python3` is often too old where a newer
# `python3.x` is installed as well; Debian's lacks ensurepip until python3-venv is installed.
.venv/.created:
	@.venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11) or sys.prefix == sys.base_prefix)' \
	    2>/dev/null || { \
	  found=; \
	  for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python); do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	    then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "Vani needs Python 3.11 or newer with its venv module (Debian, Ubuntu: apt install python3-venv);" \
	      "$(if $(PYTHON),$(PYTHON) is not that,none is on the PATH: name one with make PYTHON=/path/to/python3)" >&2; \
	    exit 1; \
	  fi; \
	  echo "Setting up .venv with $$found" >&2; \
	  "$$found" -m venv --clear .venv; \
	}
	@touch $@

# The extras are those that the examples in README.md need.
.venv/.run: .venv/.created pyproject.toml
	@echo "Installing Vani and its dependencies into .venv" >&2
	@bash .ci/install .venv/bin/python --editable '.[plot]'
	@touch $@

# The tools' extras include everything that .run installs, so the demo need not install again.
.venv/.test: .venv/.created pyproject.toml
	@echo "Installing Vani, its dependencies and the development tools into .venv" >&2
	@bash .ci/install .venv/bin/python --editable '.[plot,cluster,docs,lint,test]'
	@touch .venv/.run $@

# Installing also compiles the kernels; this is for developers who change them. Without a compiler numpy does their work.
.venv/.kernels: .venv/.created hatch_build.py $(wildcard vani/kernels/*.[ch]) vani/kernels/build.py
	@.venv/bin/python vani/kernels/build.py
	@touch $@
