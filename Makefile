# The front door. Each target sets up what it needs; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo setup build test test-frameworks check fix sanitize matrix \
  bench bench-tuner sim chaos wheel clean

PYTHON := .venv/bin/python

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 23

demo:  ## build, then run the main job on a small data set
	@tools/setup demo
	@tools/build release penstock
	@$(PYTHON) examples/demo.py

setup:  ## install what is missing and build: .venv/bin/{python,penstock}
	@tools/setup
	@tools/build release penstock

build:  ## everything, tests included, in build/release
	@tools/setup
	@tools/build release

check: build  ## format, lint, includes, sizes and types
	@tools/check

test: build  ## checks but for clang-tidy, then every test; the last line is the count
	@tools/check --quick
	@tools/run_tests

test-frameworks: setup  ## the tests with torch, TensorFlow, datasets and pandas
	@tools/setup_frameworks
	@.venv-frameworks/bin/python -m pytest -q tests/frameworks tests/compat \
	  tests/docs tests/python/test_jax.py python/penstock/_frameworks.py

fix:  ## repair what check finds and a tool can repair
	@tools/setup
	@tools/fix

# ThreadSanitizer of gcc 12 cannot live with as much address randomisation as
# newer kernels use, so it is turned off where that is allowed.
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)

sanitize:  ## the C++ tests under ASan + UBSan, then under TSan
	@tools/setup
	@tools/build asan
	tools/run_tests --cpp build/asan
	@tools/build tsan
	TSAN_OPTIONS=suppressions=$(CURDIR)/tools/tsan_suppressions.txt \
	  $(FIXED_ADDRESSES) tools/run_tests --cpp build/tsan

matrix:  ## the C++ tests by gcc and clang, debug and release
	@tools/setup
	@tools/build release
	tools/run_tests --cpp build/release
	@tools/build debug
	tools/run_tests --cpp build/debug
	@tools/build clang
	tools/run_tests --cpp build/clang
	@PRESET=clang CMAKE_ARGUMENTS=-DCMAKE_BUILD_TYPE=Release \
	  tools/build clang-release
	tools/run_tests --cpp build/clang-release

bench: setup  ## the benchmarks, in full; ONLY=name for some
	@tools/setup bench || echo "bench: no slow disk for the tuner" >&2
	@tools/build release tfrecord_bench
	@tools/setup_frameworks || echo "bench: no peer is here; showing ours only" >&2
	@$(PYTHON) bench/run.py $(if $(ONLY),--only $(ONLY))

bench-tuner: setup  ## what tuners make of pipelines that are set up badly
	@tools/setup bench
	@tools/setup_frameworks || echo "bench: no peer is here; showing ours only" >&2
	@$(PYTHON) bench/tuner/run.py

SEEDS ?= 200000
sim: setup  ## the service in virtual time: SEEDS=200000, then planted bugs
	@tools/build release sim
	@build/release/tests/sim/sim 1 $(SEEDS)
	@$(PYTHON) tests/sim/mutants.py

MINUTES ?= 10
SEED ?= 1
chaos: setup  ## real processes that are killed, hung and cut off: MINUTES, SEED
	@tools/build release chaos_preload
	@$(PYTHON) tests/chaos/run.py --minutes $(MINUTES) --seed $(SEED)

wheel: setup  ## dist/penstock-*.whl: the package with its binary
	@$(PYTHON) tools/make_wheel.py

clean:  ## remove what was built; .venv stays
	rm -rf build dist
