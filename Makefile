# Two commands do everything on a fresh machine with Python 3.11+ and a C++ compiler: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NATIVE := CMakeLists.txt $(wildcard csrc/*.* csrc/*/* include/* cmake/*)

.PHONY: help demo test test-all fuzz fuzz-reader torture sanitize test-native test-simde test-aarch64 test-mcu wheels test-wheels bench-peers lint format clean

help:  ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

# constraints.txt pins torch to a CPU build; PIP_CONSTRAINT reaches the isolated build environment too.
$(INSTALLED): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(INSTALLED)  ## train a small binary network on the embedded digits, with and without its latent weights
	$(BIN)/latentbit demo

test: $(INSTALLED)  ## the tests that guard every commit
	$(BIN)/pytest -n auto --dist loadfile

test-all: $(INSTALLED)  ## these and the slow ones
	$(BIN)/pytest -n auto --dist loadfile -m '' --timeout 3600

fuzz: $(INSTALLED)  ## five minutes of mutated packed files; SECONDS=60 SEED=7 to choose
	$(BIN)/python tests/fuzz_lbit.py --seconds $(or $(SECONDS),300) $(if $(SEED),--seed $(SEED))

torture: $(INSTALLED)  ## trainings killed, starved of disk and raced, which must end bit for bit alike; prints a table
	$(BIN)/python tests/torture.py

# The native code without Python, for this machine and for aarch64 under emulation.
# Objects of one instruction set are compiled for it alone, as in CMakeLists.txt.
NATIVE_TEST := tests/native/kernels_test.cpp
NATIVE_FLAGS := -std=c++17 -O2 -Wall -Wextra -Werror -ffp-contract=off -Icsrc -pthread
AVX512 := -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl
X86_FLAGS = $(if $(findstring avx512_popcount,$1),$(AVX512) -mavx512vpopcntdq,$(if $(findstring \
  avx512_vnni,$1),$(AVX512) -mavx512vnni,$(if $(findstring avx512_amx,$1),$(AVX512) -mamx-tile -mamx-int8,$(if $(findstring avx512,$1),$(AVX512),$(if $(findstring avx2,$1),-mavx2 -mfma)))))
# GCC 12 takes the undefined operands of AVX-512 intrinsics in its own header for a mistake of ours.
QUIET := -Wno-uninitialized -Wno-maybe-uninitialized
HEADERS := $(wildcard csrc/*.h csrc/*/*.h)
SOURCES := csrc/program.cpp csrc/threads.cpp $(wildcard csrc/cpu/*.cpp csrc/kernels/*.cpp csrc/steps/*.cpp) $(NATIVE_TEST)
X86 := $(filter-out csrc/kernels/neon%,$(SOURCES))
PORTABLE := $(filter-out csrc/kernels/avx%,$(SOURCES))
object = build/$1/$(subst /,_,$(2:.cpp=.o))

define native_object
$(call object,native,$1): $1 $(HEADERS)
	@mkdir -p build/native
	$(CXX) $(NATIVE_FLAGS) $(QUIET) $(call X86_FLAGS,$1) -c $1 -o $$@
$(call object,simde,$1): $1 $(HEADERS) $(wildcard tests/native/simde/*.h)
	@mkdir -p build/simde
	$(CXX) $(NATIVE_FLAGS) $(QUIET) -Wno-psabi -Wno-ignored-attributes -Wno-unused-function -DLATENTBIT_SIMDE -Itests/native/simde -c $1 -o $$@
endef
$(foreach source,$(X86),$(eval $(call native_object,$(source))))

build/%/kernels_test:
	$(CXX) -pthread $^ -o $@
build/native/kernels_test: $(foreach source,$(X86),$(call object,native,$(source)))
build/simde/kernels_test: $(foreach source,$(X86),$(call object,simde,$(source)))

test-native:  ## every instruction set of this machine against the portable kernels, without Python
	@if [ "$$(uname -m)" = x86_64 ]; then $(MAKE) -s build/native/kernels_test && build/native/kernels_test; \
	else echo "test-native skipped: the kernels of $$(uname -m) are tested by make test"; fi

# The sanitizers slow everything down, so they have builds of their own. The extension goes to a folder of its own too,
# in front of the one that is installed; the plain interpreter leaves the editable install alone.
SAN := -std=c++17 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -Icsrc -pthread -fno-sanitize-recover=undefined
runtime = $(shell $(CXX) -print-file-name=$1)
MUTANTS ?= 50000

define sanitized_object
$(call object,asan,$1): $1 $(HEADERS)
	@mkdir -p build/asan
	$(CXX) $(SAN) $(QUIET) -fsanitize=address,undefined $(call X86_FLAGS,$1) -c $1 -o $$@
$(call object,tsan,$1): $1 $(HEADERS)
	@mkdir -p build/tsan
	$(CXX) $(SAN) $(QUIET) -fsanitize=thread $(call X86_FLAGS,$1) -c $1 -o $$@
endef
THREADS_TEST := tests/native/threads_test.cpp
$(foreach source,$(X86) $(THREADS_TEST),$(eval $(call sanitized_object,$(source))))
build/asan/kernels_test build/asan/threads_test: SANITIZER := address,undefined
build/tsan/kernels_test build/tsan/threads_test: SANITIZER := thread
build/%san/kernels_test:
	$(CXX) -pthread -fsanitize=$(SANITIZER) $^ -o $@
build/%san/threads_test:
	$(CXX) -pthread -fsanitize=$(SANITIZER) $^ -o $@
build/asan/kernels_test: $(foreach source,$(X86),$(call object,asan,$(source)))
build/tsan/kernels_test: $(foreach source,$(X86),$(call object,tsan,$(source)))
build/asan/threads_test: $(foreach source,csrc/threads.cpp $(THREADS_TEST),$(call object,asan,$(source)))
build/tsan/threads_test: $(foreach source,csrc/threads.cpp $(THREADS_TEST),$(call object,tsan,$(source)))

build/asan/site/.installed: $(NATIVE) $(shell find src -name '*.py')
	rm -rf build/asan/site
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install -q --disable-pip-version-check --no-deps --target build/asan/site \
	  -C cmake.define.LATENTBIT_SANITIZE=address,undefined -C build-dir=build/asan/cmake .
	touch $@

sanitize: $(INSTALLED) build/asan/kernels_test build/tsan/kernels_test build/asan/threads_test build/tsan/threads_test build/asan/site/.installed  ## native core and extension under ASan and UBSan, threads under TSan, and 50,000 mutants
	build/asan/kernels_test
	build/asan/threads_test
	build/tsan/kernels_test
	build/tsan/threads_test --no-forks
	export PYTHONPATH=$(CURDIR)/build/asan/site:$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages) ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$(call runtime,libasan.so) $(call runtime,libubsan.so) $(call runtime,libstdc++.so)"; \
	python=$$(readlink -f $(BIN)/python); set -e; \
	$$python tests/fuzz_lbit.py --cases $(MUTANTS) --seed 1; \
	$$python -m pytest -q -p no:cacheprovider tests/test_kernels.py tests/test_engine.py -k 'not system_does_not_give'; \
	CFLAGS='-fsanitize=address,undefined -fno-sanitize-recover=undefined -g' LATENTBIT_C_BUILD=$(CURDIR)/build/asan/cmake \
	  $$python -m pytest -q -p no:cacheprovider tests/test_c_api.py

# Coverage-guided fuzzing of the C++ reader, planner and steps, with Debian's clang (apt-get install clang). New inputs go to
# build/fuzz/corpus, findings to build/fuzz/findings. The dictionary knows the words of the format.
FUZZ := -std=c++17 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -Icsrc -pthread -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined
FUZZ_SOURCES := $(filter-out $(NATIVE_TEST),$(X86)) $(wildcard csrc/lbit/*.cpp) tests/native/fuzz_reader.cpp
define fuzz_object
$(call object,fuzz,$1): $1 $(HEADERS)
	@mkdir -p build/fuzz
	clang++ $(FUZZ) $(call X86_FLAGS,$1) -c $1 -o $$@
endef
$(foreach source,$(FUZZ_SOURCES),$(eval $(call fuzz_object,$(source))))
build/fuzz/fuzz_reader: $(foreach source,$(FUZZ_SOURCES),$(call object,fuzz,$(source)))
	clang++ -pthread -fsanitize=address,undefined,fuzzer $^ -o $@

fuzz-reader: build/fuzz/fuzz_reader  ## libFuzzer on the C++ reader for five minutes; SECONDS=60 or RUNS=1000000
	mkdir -p build/fuzz/corpus build/fuzz/findings
	build/fuzz/fuzz_reader -max_total_time=$(or $(SECONDS),$(if $(RUNS),0,300)) $(if $(RUNS),-runs=$(RUNS)) -timeout=5 -rss_limit_mb=1024 \
	  -dict=tests/native/lbit.dict -max_len=8192 -artifact_prefix=build/fuzz/findings/ build/fuzz/corpus tests/corpus/accepted tests/corpus/refused

test-simde:  ## AVX2 and AVX-512 kernels on any machine, their instructions emulated
	@if [ -e /usr/include/simde/x86/avx512.h ]; then $(MAKE) -s build/simde/kernels_test && build/simde/kernels_test; \
	else echo "test-simde skipped: apt-get install libsimde-dev"; fi

test-aarch64:  ## the NEON kernels against the portable ones, cross-compiled, under qemu-user
	@if command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then \
	  mkdir -p build/aarch64 && \
	  aarch64-linux-gnu-g++ $(NATIVE_FLAGS) -march=armv8.2-a+dotprod -c csrc/kernels/neon_dot.cpp -o build/aarch64/dot.o && \
	  aarch64-linux-gnu-g++ $(NATIVE_FLAGS) -static $(filter-out %_dot.cpp,$(PORTABLE)) build/aarch64/dot.o -o build/aarch64/kernels_test && \
	  qemu-aarch64 build/aarch64/kernels_test; \
	else echo "test-aarch64 skipped: apt-get install g++-aarch64-linux-gnu qemu-user"; fi

MCU_PACKAGES := gcc-arm-none-eabi picolibc-arm-none-eabi gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-arm qemu-system-misc
test-mcu: $(INSTALLED)  ## exported C on Cortex-M0, M4, M7, M33 and rv32imc, cross-compiled, under qemu-system; MCU="m4 rv32imc" to choose
	@if command -v arm-none-eabi-gcc >/dev/null && command -v riscv64-unknown-elf-gcc >/dev/null && \
	  command -v qemu-system-arm >/dev/null && command -v qemu-system-riscv32 >/dev/null; then \
	  LATENTBIT_MCU="$(or $(MCU),m0 m4 m7 m33 rv32imc)" $(BIN)/pytest -q tests/export/test_c.py -k microcontrollers; \
	else echo "test-mcu skipped: apt-get install $(MCU_PACKAGES)"; fi

lint: $(INSTALLED)  ## ruff, ruff-format, mypy, clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(wildcard csrc/*.cpp csrc/*.h csrc/*/* include/*.h examples/c/*.c tests/native/*.cpp)

format: $(INSTALLED)  ## rewrite the sources as lint wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard csrc/*.cpp csrc/*.h csrc/*/* include/*.h examples/c/*.c tests/native/*.cpp)

wheels:  ## what people install, into dist/: wheels for x86-64 and aarch64, and a source archive (some minutes)
	$(PYTHON) packaging/wheels.py

test-wheels: $(INSTALLED)  ## wheels built and installed in clean environments, aarch64 under qemu-user
	$(BIN)/pytest -m slow --timeout 3600 tests/test_wheels.py

PEERS ?= $(HOME)/.cache/latentbit/peers

bench-peers:  ## environments of the engines that bench/engine.py compares with (2 GB, slow); see PEERS in the Makefile
	set -e; for peer in openvino onnxruntime larq; do \
	  test -x $(PEERS)/$$peer/bin/python || $(PYTHON) -m venv $(PEERS)/$$peer; \
	  $(PEERS)/$$peer/bin/pip install -q --disable-pip-version-check -r bench/peers/$$peer.txt; \
	done

clean:  ## remove the environment and the builds
	rm -rf $(VENV) build dist
