#!/usr/bin/env bash
# The tests of what computes with floats, once for each kind of processor that this one can stand in for.
#
#   ATEN_CPU_CAPABILITY     the instructions that torch's own loops use
#   MKL_ENABLE_INSTRUCTIONS the newest that torch's matrix products (MKL) may use; Intel's processors obey it
#   OPENBLAS_CORETYPE       the core that the matrix products of numpy, scipy and faiss (OpenBLAS) are written for
#   OMP_NUM_THREADS         threads of all of them
#
# Usage: tools/test_processors.sh PYTHON [PYTEST OPTIONS]
set -uo pipefail
cd "$(dirname "$0")/.."
python=$1
shift

export OMP_WAIT_POLICY=passive  # threads that wait leave the processor to those that compute

failed=()
with() {
  echo "== $*"
  env "$@" "$python" -m pytest --quiet "${options[@]}" tests/model tests/index tests/systems || failed+=("$*")
}

options=("$@")
with OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default
with OMP_NUM_THREADS=2 ATEN_CPU_CAPABILITY=avx2
with OMP_NUM_THREADS=1 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem
with OMP_NUM_THREADS=2

if ((${#failed[@]})); then
  printf 'Tests failed with %s\n' "${failed[@]}" >&2
  exit 1
fi
