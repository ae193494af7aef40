# Two commands matter: `make book` and `make test`. The rest is convenience.
# Variables: PROFILE=quick|full DEVICE=auto|cpu|cuda SEED= JOBS= PAGE= UNTRIED= CLUSTER=

PYTHON ?= python3
VENV := .venv/bin/python
REDERIVE := $(VENV) -m rederive_book

.PHONY: book test check-site pdf lab serve clean lock bench audit scan environment

book: environment
	@$(REDERIVE) book --profile "$(PROFILE)" --device "$(DEVICE)" --seed "$(SEED)" \
	  --jobs "$(JOBS)" --page "$(PAGE)" --untried "$(UNTRIED)" \
	  --cluster "$(CLUSTER)"

test: environment
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	.venv/bin/lint-imports
	$(VENV) -m pytest -q --numprocesses logical --maxprocesses 4 --dist loadfile $(TESTS)

# Looks at every page of the built site in an installed Chromium.
check-site: environment
	CHECK_SITE=1 $(VENV) -m pytest -q tests/test_site_browser.py

pdf: environment
	@$(VENV) -m rederive_book.pdf

lab: environment
	@$(REDERIVE) lab --page "$(PAGE)"

serve: environment
	@$(REDERIVE) serve

clean:
	rm -rf _build .pytask pytask.lock pytask.lock.journal

bench: environment
	$(VENV) -m benchmarks

# Slow: plants faults in copies of the library, kills builds, builds the book twice, tries mutants.
audit: environment
	@test -d .venv/mutmut/mutmut || $(VENV) -m pip install --quiet --target .venv/mutmut \
	  --require-hashes --requirement audit/requirements-mutants.txt
	$(VENV) -m audit

# Asks osv.dev about every version in the lock; status 2 says that it could not.
scan:
	$(PYTHON) -m audit.vulnerabilities

# Resolves again within what pyproject.toml allows; versions already locked stay unless UPGRADE=--upgrade.
# Left out: torch, whose build is chosen apart, and a grammar of web addresses that only a check of
# formats would use, which nothing here asks for; every process that reads a notebook would parse it.
lock: environment
	$(VENV) -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --constraint requirements-torch.txt \
	  --no-emit-package torch --no-emit-package rfc3987-syntax --no-emit-package lark \
	  $(UPGRADE) --output-file requirements.lock

environment:
	@$(PYTHON) lib/rederive_book/environment.py
