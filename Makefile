# The commands people use. Each does its own set-up (scripts/setup.sh, Debian and
# Ubuntu) and leaves what it makes under target/ (or CARGO_TARGET_DIR).

CARGO  ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
BINARY ?= $(TARGET)/release/mayfly

# A fresh clone is compiled once: what would help to compile it again takes its share of the time.
ifeq ($(wildcard $(TARGET)/debug/incremental),)
export CARGO_INCREMENTAL ?= 0
# Of crates that are optimised, each unit compiles the small functions of others anew: server takes 98 s of the processor
# in 16 units, and 70 in 4.
export CARGO_PROFILE_DEV_CODEGEN_UNITS ?= 4
endif

.PHONY: help build run test bench instructions lint fuzz doc package repository image clean

help:
	@echo "make build   target/release/mayfly and mayfly-tools, guided by a profile (PLAIN=1 takes half the time)"
	@echo "make run     the demo site on http://127.0.0.1:8080/ (PORT=8080)"
	@echo "make test    every test: crates, demo, scripts, WordPress and DokuWiki in a browser"
	@echo "make bench   Mayfly beside its peers, and its promises; QUICK=1 takes three minutes"
	@echo "make instructions   what a hit costs, counted by callgrind"
	@echo "make lint    formatting, clippy, documents, imports, licences; warnings are errors"
	@echo "make fuzz    each fuzz target for FUZZ_SECONDS=20; Miri and AddressSanitizer where Rust nightly is"
	@echo "make doc     the documentation of all crates"
	@echo "make package Debian packages and a static program, in target/package/out (ARCH=arm64 for the other kind of machine)"
	@echo "make repository signed repositories for apt and dnf, from what make package made"
	@echo "make image   an image for containers from the Debian package, without a daemon"

build:
	@scripts/setup.sh build $(if $(PLAIN),,train)
	@CARGO="$(CARGO)" scripts/build.sh $(if $(PLAIN),plain)

run:
	@scripts/setup.sh build run
	@scripts/run-demo.sh "$$(CARGO="$(CARGO)" scripts/build.sh look)"

test:
	@scripts/setup.sh build run test instructions
	@CARGO="$(CARGO)" LINTS="$(LINTS)" scripts/test.sh

bench:
	@scripts/setup.sh build train run bench
	@CARGO="$(CARGO)" scripts/build.sh
	$(CARGO) build --release --locked --package bench-tools
	@bench/all.py --binary "$(BINARY)" $(if $(QUICK),--quick) $(BENCH_ARGS)

instructions:
	@scripts/setup.sh build instructions
	$(CARGO) build --profile counted --locked --package mayfly
	@bench/instructions.py --binary "$(TARGET)/counted/mayfly" $(INSTRUCTIONS_ARGS)

lint:
	@scripts/setup.sh build lint
	@CARGO="$(CARGO)" scripts/lint.sh $(LINT)

fuzz:
	@scripts/setup.sh build fuzz
	@CARGO="$(CARGO)" scripts/fuzz.sh
	@CARGO="$(CARGO)" scripts/unsafe.sh

doc:
	@scripts/setup.sh build
	$(CARGO) doc --workspace --no-deps

package:
	@scripts/setup.sh build package $(if $(ARCH),package-$(ARCH))
	@CARGO="$(CARGO)" ARCH="$(ARCH)" scripts/package/build.sh

repository:
	@scripts/setup.sh repository
	@scripts/package/repository.sh

image:
	@scripts/setup.sh image
	@scripts/package/image.sh

clean:
	$(CARGO) clean
