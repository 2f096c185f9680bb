# A thin layer over Meson. Every target first installs what it needs (tools/setup), so a fresh Debian 12
# or Ubuntu 24.04 machine needs nothing by hand.

MESON        ?= meson
NINJA        ?= ninja
PREFIX       ?= /usr/local
DESTDIR      ?=
FUZZ_SECONDS ?= 30
ATTACK_SECONDS ?= 60
# What `test`, `clang`, `asan`, `tsan` and `test-odd` run: SUITES="unit contract", or test names;
# empty means all, but for NO_SUITES. VARIANTS: those of tools/test-odd.
SUITES       ?=
NO_SUITES    ?=
TESTS        ?=
VARIANTS     ?=

export ASAN_OPTIONS  ?= detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS ?= print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS  ?= halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions=$(CURDIR)/tests/tsan.supp

# $(call compile,DIR,OPTIONS): configure DIR once, then build it. with_tests: build may be without.
with_tests = @test ! -f build/build.ninja || \
	    grep -q '^build tests/libharness.a:' build/build.ninja || \
	    $(MESON) configure build -Dtests=true
setup   = @test -f $(1)/build.ninja || $(MESON) setup $(1) $(2)
compile = $(setup) && $(NINJA) -C $(1)
select  = $(foreach suite,$(SUITES),--suite $(suite)) $(foreach suite,$(NO_SUITES),--no-suite $(suite)) $(TESTS)

.PHONY: build run race test quick test-odd check lint asan tsan clang fuzz attack mutants bench
.PHONY: screenshots torture-guard torture-campus install dist deb test-packages clean help

build: ## build/interlock, and the library in build/src (the default)
	@tools/setup build
	$(call compile,build,-Dtests=false)
	@ln -sfn src/cli/interlock build/interlock

run: build ## see everything at work, with a link to the admin page; Ctrl-C ends it
	@build/interlock demo

race: build ## see it work: wrappers that race for a key
	@tools/demo build/interlock

test: ## every suite; prints "N passed, N failed, N skipped"
	@tools/setup build test
	$(with_tests)
	$(call compile,build,-Dtests=true)
	@ln -sfn src/cli/interlock build/interlock
	@tools/run-tests build $(select)

quick: ## while you work: unit, contract on memory and SQLite, a few CLI tests (2 minutes)
	@tools/setup build test
	$(with_tests)
	$(call setup,build,-Dtests=true)
	@tools/run-tests build --suite quick

test-odd: ## the suites on odd machines: uptime, host name, locale, umask...; VARIANTS="tmpdir user"
	@tools/setup build test
	$(with_tests)
	$(call compile,build,-Dtests=true)
	@VARIANTS="$(VARIANTS)" SUITES="$(SUITES)" TESTS="$(TESTS)" tools/test-odd build

check: lint test ## what to run before sending a change

lint: ## format, static analysis, layers, symbols, words
	@tools/setup lint
	$(call compile,build-clang,--native-file tools/clang.ini)
	@tools/lint build-clang

clang: ## every suite, built by clang
	@tools/setup build test
	$(call compile,build-clang,--native-file tools/clang.ini)
	@tools/run-tests build-clang $(select)

asan_options = -Doptimization=1 -Db_sanitize=address$(comma)undefined

asan: ## the suites under AddressSanitizer and UndefinedBehaviorSanitizer (gcc)
	@tools/setup build test
	$(call compile,build-asan,$(asan_options))
	@tools/run-tests build-asan --timeout-multiplier 4 $(select)

tsan: ## the suites under ThreadSanitizer (clang)
	@tools/setup build test
	$(call compile,build-tsan,--native-file tools/clang.ini -Doptimization=1 -Db_sanitize=thread -Db_lundef=false)
	@tools/run-tests build-tsan --timeout-multiplier 6 $(select)

fuzz: ## each fuzz target for FUZZ_SECONDS, from its corpus
	@tools/setup fuzz
	$(call compile,build-fuzz,--native-file tools/clang.ini -Dfuzz=true -Doptimization=1 -Db_sanitize=address$(comma)undefined -Db_lundef=false)
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

attack: build ## hostile clients against a running server, ATTACK_SECONDS for each engine
	@tools/setup build test
	@test -f build-asan/build.ninja || $(MESON) setup build-asan $(asan_options)
	@$(NINJA) -C build-asan src/cli/interlock
	@ATTACK_SECONDS=$(ATTACK_SECONDS) tools/attack build-asan/src/cli/interlock \
	    $(CURDIR)/build/src/cli/interlock

torture-guard: ## eight processes with 10,000 transfers each through the guard kit, at night
	@tools/setup build test
	$(with_tests)
	$(call compile,build,-Dtests=true)
	@IL_TEST_TRANSFERS=10000 tools/run-tests build --timeout-multiplier 10 \
	    guard-transfer-sqlite guard-transfer-postgres guard-transfer-bouncer

torture-campus: ## a storm of 20,000 calls by eight processes on the campus, at night
	@tools/setup build test
	$(with_tests)
	$(call compile,build,-Dtests=true)
	@IL_CAMPUS_CALLS=20000 tools/run-tests build --timeout-multiplier 10 \
	    campus-storm-sqlite campus-storm-postgres

mutants: ## seeded bugs: each must be detected by the suite
	@tools/setup build test
	@tools/mutants $(if $(SAMPLE),--sample $(SAMPLE))

screenshots: ## pictures of the admin page: all in build/screenshots, those of the docs in docs/images
	@tools/setup build test
	$(call compile,build,-Dtests=true)
	@INTERLOCK_BIN=$(CURDIR)/build/src/cli/interlock tests/ui/run $(CURDIR) $(CURDIR)/build/tests/ui/screenshots \
	    screenshots $(CURDIR)/build/screenshots
	@for picture in docs/images/*.png; do cp build/screenshots/"$${picture##*/}" docs/images; done

bench: ## speed, as ratios to bare loops and peers: a table, and build/bench.json (ten minutes)
	@tools/setup build bench
	@test -x build/bench/interlock-bench || test ! -f build/build.ninja || $(MESON) setup --reconfigure build
	@$(MAKE) --no-print-directory build
	@build/bench/interlock-bench --binary build/interlock --json build/bench.json

install: build ## into PREFIX (/usr/local), below DESTDIR
	@$(MESON) configure build -Dprefix=$(PREFIX)
	@DESTDIR=$(abspath $(DESTDIR)) $(MESON) install -C build

dist: ## a source archive in build/dist, which builds without git and npm
	@tools/setup build
	@tools/dist build/dist

deb: ## Debian packages in build/deb
	@tools/setup deb
	@tools/build-deb build/deb

test-packages: ## packages in a new system, and the container: install, use, remove (root, network)
	@tools/setup container
	@tools/test-packages build/deb

clean: ## remove every build folder
	rm -rf build build-clang build-asan build-tsan build-fuzz build-mutants

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

comma := ,
