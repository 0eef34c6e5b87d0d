# make demo   what it does, on this machine, in a minute
# make test   every test; needs what `.ci/setup test` installs
# make bench  the figures of docs/benchmarks.md, beside LLVM's tools
# make lint   formatting, clippy and documentation, warnings denied
export CUDA_PATH ?= $(CURDIR)/.tools/cuda

.PHONY: demo test bench lint
demo:
	@.ci/setup demo
	@.ci/demo

test:
	@.ci/setup test
	.ci/test

bench:
	@.ci/setup test
	cargo bench --quiet --locked -p offload-link --bench figures --bench bundler -- --bench

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
