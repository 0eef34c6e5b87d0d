# make demo   what it does, on this machine, in a few minutes
# make test   the tests, without the longest and with few cases of others; needs what `.ci/setup test` installs
# make test-all  every test with all of its cases
# make bench  the figures of docs/benchmarks.md, beside LLVM's tools; also in target/bench, with bars as SVG
# make fuzz  each fuzz target for SECONDS (60)
# make gpu-kit  programs for a machine with a GPU and no compiler, in target/gpu-kit (docs/gpu-kit.md)
# make docs   the pages of docs/ as a book, in target/book; needs mdbook
# make lint   formatting, clippy and documentation, warnings denied
# make msrv   the crates with the Rust of `rust-version`, if rustup has it or gets it

demo: export CUDA_PATH ?= $(CURDIR)/.tools/cuda-12
test test-all bench gpu-kit: export CUDA_PATH ?= $(CURDIR)/.tools/cuda

.PHONY: demo test test-all msrv bench fuzz gpu-kit docs lint
demo:
	@.ci/setup demo
	@.ci/demo

test:
	@.ci/setup test
	.ci/test

test-all:
	@OFFLOAD_TEST_ALL=1 $(MAKE) --no-print-directory test

bench:
	@.ci/setup test
	@.ci/bench

SECONDS ?= 60
fuzz:
	@.ci/fuzz $(SECONDS)

gpu-kit:
	@.ci/setup test
	@.ci/gpu-kit

docs:
	@.ci/docs

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
# As a build script has it: without the features of the tools.
	cargo clippy --package offload-build --lib --locked -- -D warnings
	cargo clippy --package offload-formats-core --lib --no-default-features --locked -- -D warnings
	cargo clippy --package offload-formats --lib --no-default-features --locked -- -D warnings
	cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz/check
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

msrv:
	@.ci/msrv
