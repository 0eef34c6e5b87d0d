#!/bin/sh
# Runs each program of the kit and prints a table: docs/gpu-kit.md. The exit status is 1 if a program failed.
set -u
cd "$(dirname "$0")" || exit 1
limit=${GPU_KIT_SECONDS:-120}
temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# Describes the first GPU of an API. Sets `gpu` to its processor, to `unknown` if the driver fails, to nothing without one.
probe() { # API
  text=$(timeout -k 5 "$limit" bin/loads probe "$1" 2>&1 < /dev/null)
  status=$?
  text=$(printf '%s\n' "$text" | tail -n 1 | tr -cd '[:print:]')
  case $status:$text in
    0:*) gpu=${text%% *} ;;
    # No library, no device (100), no valid device (101).
    *.so*' is missing' | *'(100)' | *'(101)' | *': 0 GPUs') gpu= ;;
    *) gpu=unknown ;;
  esac
  echo "$1: $text"
}

# Whether an image for one of the targets serves a GPU.
serves() { # GPU TARGET...
  processor=$1
  shift
  for target in "$@"; do
    case $target:$processor in
      "$processor:$target") return 0 ;;
      # Machine code for newer processors of the same generation, PTX for all newer ones.
      sm_*:"${target%?}"*) [ "${processor#sm_}" -lt "${target#sm_}" ] || return 0 ;;
      compute_*:sm_*) [ "${processor#sm_}" -lt "${target#compute_}" ] || return 0 ;;
      sm_*:unknown | compute_*:unknown) [ "$nvidia" != unknown ] || return 0 ;;
      gfx*:unknown) [ "$amd" != unknown ] || return 0 ;;
    esac
  done
  return 1
}

line() { printf '%-28s | %-20s | %-22s | %s\n' "$@"; }

row() { # PROGRAM LINKED-BY TARGETS COMMAND...
  program=$1 linked=$2 targets=$3
  shift 3
  vendors=
  case $targets in *sm_* | *compute_*) vendors=NVIDIA ;; esac
  case $targets in *gfx*) vendors=${vendors:+$vendors or }AMD ;; esac
  # shellcheck disable=SC2086
  if ! serves "$nvidia" $targets && ! serves "$amd" $targets; then
    case $vendors:$nvidia:$amd in
      NVIDIA::* | AMD:*: | *or*::) line "$program" "$linked" "$targets" "skipped: no $vendors GPU" ;;
      *) line "$program" "$linked" "$targets" "skipped: no GPU for these targets" ;;
    esac
    return
  fi
  # Without the shell's own line about a signal.
  { text=$(timeout -k 5 "$limit" "$@" 2>&1 < /dev/null); } 2> /dev/null
  status=$?
  last=$(printf '%s\n' "$text" | tail -n 1 | tr -cd '[:print:]')
  case $status:$text in
    0:*'on the CPU:'*) result='error: it found no GPU and ran on the CPU' ;;
    0:*) result=ok ;;
    127:*'error while loading shared libraries: '*)
      last=${last#*libraries: }
      result="skipped: ${last%%:*} is missing"
      ;;
    *'wrong result'* | *'right: no'* | *'right: false'*) result='wrong result' ;;
    124:* | 137:*) result="error: no result after $limit seconds" ;;
    *) result="error: $last (exit status $status)" ;;
  esac
  line "$program" "$linked" "$targets" "$result"
  case $result in
    ok | skipped:*) ;;
    *)
      failed=1
      { echo && echo "$program, linked by $linked:" && printf '%s\n' "$text"; } >> "$temporary/log"
      ;;
  esac
}

# OpenMP's programs use the runtime of LLVM 19 in the kit, and fail instead of running on the CPU.
openmp() { # PROGRAM LINKED-BY TARGETS COMMAND
  row "$1" "$2" "$3" env OMP_TARGET_OFFLOAD=MANDATORY \
    LD_LIBRARY_PATH="$temporary/openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$4"
}

probe cuda
nvidia=$gpu
probe hip
amd=$gpu
if [ -n "$nvidia$amd" ]; then
  mkdir "$temporary/openmp"
  gzip -dc openmp.tar.gz | tar -xf - -C "$temporary/openmp"
fi
echo
line program 'linked by' targets result
line ---------------------------- -------------------- ---------------------- ------
row 'CUDA module' 'offload-build' 'sm_90 compute_80' bin/loads cuda
row 'CUDA module, PTX' 'offload-build' 'compute_80' bin/loads ptx
row 'HIP module' 'offload-build' 'gfx90a gfx942' bin/loads hip
row 'HIP module, compressed' 'offload-build' 'gfx90a gfx942' bin/loads hip_zstd
for compiler in clang nvcc; do
  row "CUDA host code, $compiler" 'offload-build' 'sm_90' bin/launches "$compiler"
  row "CUDA host code, $compiler, rdc" 'offload-build' 'sm_90' bin/launches "${compiler}_rdc"
done
row 'CUDA host code, clang, PTX' 'offload-build' 'compute_80' bin/launches clang_ptx
row 'CUDA host code, clang, LZ4' 'offload-build' 'sm_80 sm_90 compute_80' bin/launches clang_lz4
row 'CUDA host code, clang, zstd' 'offload-build' 'sm_80 sm_90 compute_80' bin/launches clang_zstd
row 'CUDA host code, nvcc, zstd' 'offload-build' 'sm_80 sm_90' bin/launches nvcc_zstd
row 'Rust kernels' 'offload-build' 'sm_90 gfx90a' bin/rust-kernels
row 'Rust kernels, as on CPUs' 'offload-build' 'sm_90 gfx90a' bin/compares images
row 'Rust kernels, PTX' 'offload-build' 'compute_80' bin/compares ptx
row 'Rust kernels, panic' 'offload-build' 'sm_90 compute_80' bin/compares traps
row 'CUDA program' 'offload-link' 'sm_90' bin/cuda-offload-link
row 'CUDA program' 'clang-linker-wrapper' 'sm_90' bin/cuda-llvm
openmp 'OpenMP crate' 'offload-build' 'sm_90 gfx90a' bin/openmp-saxpy
openmp 'OpenMP program' 'offload-link' 'sm_90 gfx90a' bin/openmp-offload-link
openmp 'OpenMP program' 'clang-linker-wrapper' 'gfx90a' bin/openmp-llvm
openmp 'OpenMP archive' 'offload-link' 'sm_90 gfx90a' bin/openmp-archive
[ ! -e "$temporary/log" ] || cat "$temporary/log"
if serves "$nvidia" sm_90 compute_80 || serves "$amd" gfx90a; then
  echo
  timeout -k 5 "$limit" bin/compares speeds 2>&1 < /dev/null || failed=1
fi
exit $failed
