#!/bin/sh
# Builds and tests a package with device code on a machine without a GPU.
set -eu
export OMP_TARGET_OFFLOAD=MANDATORY
export OFFLOAD_TARGETS=x86_64-pc-linux-gnu,gfx90a
cargo build
cargo test
cargo offload doctor
for program in "${CARGO_TARGET_DIR:-target}"/debug/*; do
  if [ -f "$program" ] && [ -x "$program" ]; then
    cargo offload inspect "$program"
  fi
done
