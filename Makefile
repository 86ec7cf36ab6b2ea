# Limosa: everything a user or developer runs. `make` lists the targets.
#
# What is needed from the system: Rust (cargo), Python 3.10 or newer with venv and its C header, gcc, make. Everything
# else is installed into .venv; a target does its own set-up and repeats only what has changed.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
NP ?= 4
DEVICE ?= fabric

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
export PATH := $(CURDIR)/$(BIN):$(PATH)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Python compiles a module where it is first imported; most are never. It must keep the result: otherwise each rank of
# each test compiles all modules that it imports.
INSTALL := $(PIP) install --no-compile
unexport PYTHONDONTWRITEBYTECODE

# What the wheel is made of: a change here installs it again.
WHEEL_SOURCES := $(shell find api crates fortran java kernels lab octave python -type f -not -path '*/tests/*' \
                         -not -path '*/__pycache__/*') \
                 Cargo.toml Cargo.lock pyproject.toml

.PHONY: help
help: ## List the targets
	@echo "Limosa. Targets:"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- for users -------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(STAMPS)/mpi4py $(STAMPS)/demo ## Solve the wave equation on 4 processes (NP=... for another number, HOSTS=a,b)
	limosa run -n $(NP) $(if $(HOSTS),--device $(DEVICE) -host $(HOSTS)) python kernels/wave3d/wave3d.py --slice-png wave3d.png

.PHONY: wheel
wheel: $(STAMPS)/build ## Build the wheel into dist/
	rm -f dist/limosa-*.whl
	$(PIP) wheel . --no-deps --no-build-isolation --wheel-dir dist
	@ls dist/limosa-*.whl

# The banner is an advertisement of the theme's authors for another tool.
.PHONY: docs
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(STAMPS)/docs ## Build the documentation as a site into target/site/
	python python/tools/pages/reference_java.py
	python -m mkdocs build --quiet
	@echo target/site/index.html

.PHONY: java-artefact
java-artefact: | system-packages ## Build org.limosa:limosa-mpi with Maven into target/java/ (needs mvn and a JDK 22)
	JAVA_HOME=$$($(PYTHON) -c 'import sys; sys.path[:0] = ["python/limosa"]; import _java_find; \
	                           print(_java_find.find("javac").resolve().parents[1])') \
	    mvn --batch-mode --no-transfer-progress --quiet --file java/pom.xml package
	@ls target/java/limosa-mpi-*.jar

.PHONY: venv
venv: $(STAMPS)/mpi4py $(STAMPS)/demo $(STAMPS)/test $(STAMPS)/lint ## Set up .venv with Limosa, mpi4py and all tools

# --- for developers --------------------------------------------------------------------------------------------------

.PHONY: test
test: ## Run all tests (short form)
	@tests/all

.PHONY: test-full
test-full: ## Run all tests in all variants; takes an hour or so
	@tests/all --full

# The parts of `make test`. FULL=1 is set by `make test-full`.
# The sanitizer is an option of nightly compilers, which RUSTC_BOOTSTRAP unlocks. Leaks are those of tests that end with
# requests open.
ADDRESSES = ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
            cargo test --target $$(rustc -vV | sed -n 's/^host: //p') --target-dir target/addresses --no-fail-fast \
            $(addprefix -p limosa-,base device p2p coll rma io)
C_PROGRAMS = python -m pytest tests/conformance $(PYTEST_ARGS)
LOOM = RUSTFLAGS='--cfg loom' cargo test --package limosa-base --lib --release --target-dir target/loom

.PHONY: test-build test-rust test-loom test-fuzz test-c test-python test-hosts test-quiet test-octave test-java
.PHONY: test-mpi4py
test-build: $(STAMPS)/mpi4py $(STAMPS)/demo $(STAMPS)/test

test-rust: | system-packages ## Unit, property and integration tests of the crates
	cargo test --workspace --no-fail-fast
	$(if $(FULL),$(ADDRESSES))

test-loom: | system-packages ## Models of the lock-free structures, unless they have passed as they are
	tests/checked loom limosa-base make --no-print-directory loom

test-fuzz: | system-packages ## Fuzzing, unless it has passed with the crates as they are
	tests/checked fuzz limosa-fuzz make --no-print-directory fuzz

test-c: $(STAMPS)/limosa $(STAMPS)/test ## Conformance tests in C, compiled with our mpicc
	$(C_PROGRAMS) $(if $(FULL),--full --variants all)
	$(C_PROGRAMS) --mpich $(if $(FULL),--full,--np 3)
	$(C_PROGRAMS) --openmpi $(if $(FULL),--full,--np 3)
	$(if $(FULL),$(C_PROGRAMS) --cluster 2)
	$(if $(FULL),$(C_PROGRAMS) --sanitize address)
	$(if $(FULL),$(C_PROGRAMS) --sanitize thread)

test-python: $(STAMPS)/mpi4py $(STAMPS)/demo $(STAMPS)/test ## Tests of the wheel, the demo, the launcher, faults
	python -m pytest --ignore=tests/conformance --ignore=tests/hosts --ignore=tests/octave --ignore=tests/java \
	    $(if $(FULL),--full) $(PYTEST_ARGS)

test-hosts: $(STAMPS)/mpi4py $(STAMPS)/test ## Tests of jobs on several hosts
	python -m pytest tests/hosts $(PYTEST_ARGS)

test-quiet: $(STAMPS)/mpi4py $(STAMPS)/demo $(STAMPS)/test ## Tests that count or time what other work disturbs
	python -m pytest -m quiet --ignore=tests/octave --ignore=tests/java $(PYTEST_ARGS)

test-octave: $(STAMPS)/limosa $(STAMPS)/test ## Tests of the Octave package and its toolboxes
	python -m pytest tests/octave $(PYTEST_ARGS)

test-java: $(STAMPS)/limosa $(STAMPS)/test ## Tests of the package mpi for Java
	python -m pytest tests/java $(PYTEST_ARGS)

test-mpi4py: $(STAMPS)/mpi4py $(STAMPS)/test ## mpi4py's own test suite on our library
	tests/mpi4py/run $(if $(FULL),--full)
	$(if $(FULL),tests/mpi4py/run --cluster 2)

# Compilers give way to the tests that run beside them.
FUZZ_SECONDS ?= $(if $(FULL),600,60)
.PHONY: addresses
addresses: | system-packages ## Run the tests of the crates below the ABI with the address sanitizer
	$(ADDRESSES)

.PHONY: loom
loom: | system-packages ## Run the models of the lock-free structures with loom
	nice env $(LOOM) --no-run
	$(LOOM) model

.PHONY: fuzz
fuzz: | system-packages ## Fuzz what reads foreign bytes, for FUZZ_SECONDS=60
	nice tests/fuzz/run build
	$(if $(FULL),SEED=0) tests/fuzz/run $(FUZZ_SECONDS)

.PHONY: coverage
coverage: $(STAMPS)/test ## Line coverage of the crates by their tests and the C programs
	tests/coverage

.PHONY: lint
lint: $(STAMPS)/lint $(STAMPS)/test $(STAMPS)/demo $(STAMPS)/mpi4py | system-packages
lint: ## Formatting, clippy, ruff, mypy, shellcheck
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	.ci/check-aarch64
	ruff check
	ruff format --check
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run --Werror
	mypy
	vermin --quiet --no-tips --violations --target=3.10- python lab kernels
	shellcheck python/scripts/* python/tools/check-system .ci/run .ci/check-aarch64 tests/all tests/checked tests/steady tests/fuzz/run tests/hosts/mpiexec tests/hosts/start-host

.PHONY: micro-bench
micro-bench: ## Times of single calls of base and p2p
	cargo bench -p limosa-base -p limosa-p2p --bench calls

.PHONY: bench
bench: $(STAMPS)/limosa $(STAMPS)/lab ## Measure beside MPICH, Open MPI and Intel MPI (QUICK=1: in short)
	limosa bench --budgets --against mpich,openmpi,intel $(if $(QUICK),--quick) --output bench/$$(date +%Y%m%d-%H%M%S)

.PHONY: clean
clean: ## Remove what was built (the cached modules for mpi4py outside the tree stay)
	rm -rf target $(VENV) dist wave3d.png .pytest_cache .mypy_cache .ruff_cache .hypothesis

# --- set-up ----------------------------------------------------------------------------------------------------------

.PHONY: system-packages
system-packages:
	@python/tools/check-system $(PYTHON)

$(STAMPS)/venv: | system-packages
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade 'pip>=25.1'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/build: pyproject.toml $(STAMPS)/venv
	$(INSTALL) 'hatchling>=1.26'
	@touch $@

$(STAMPS)/demo $(STAMPS)/docs $(STAMPS)/lab $(STAMPS)/test $(STAMPS)/lint: $(STAMPS)/%: pyproject.toml $(STAMPS)/venv
	$(INSTALL) --group $*
	@touch $@

$(STAMPS)/limosa: $(WHEEL_SOURCES) $(STAMPS)/build
	@rm -rf $(VENV)/wheel
	$(PIP) wheel . --no-deps --no-build-isolation --wheel-dir $(VENV)/wheel
	$(INSTALL) $(VENV)/wheel/limosa-*.whl
	$(INSTALL) --force-reinstall --no-deps $(VENV)/wheel/limosa-*.whl
	@touch $@

$(STAMPS)/mpi4py: $(STAMPS)/limosa
	$(INSTALL) "$$(echo $(VENV)/wheel/limosa-*.whl)[mpi4py]"
	@touch $@
