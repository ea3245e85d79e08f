#!/usr/bin/env bash
# Run the tests of floating-point code once for each kind of CPU that this one can emulate.
#
#   ATEN_CPU_CAPABILITY     instructions of torch's own loops
#   MKL_ENABLE_INSTRUCTIONS newest instructions of torch's matrix products (MKL), on Intel CPUs
#   OPENBLAS_CORETYPE       kernels of the matrix products of numpy, scipy and faiss (OpenBLAS)
#   OMP_NUM_THREADS         threads of all of them
#
# Usage: tools/test_processors.sh PYTHON [PYTEST OPTIONS]
set -uo pipefail
cd "$(dirname "$0")/.."
python=$1
shift

export OMP_WAIT_POLICY=passive  # waiting threads yield the CPU

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
