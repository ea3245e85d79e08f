#!/usr/bin/env bash
# Run the tests of floating-point code once for each kind of CPU that this one can emulate.
#
#   ATEN_CPU_CAPABILITY     instructions of torch's own loops
#   MKL_ENABLE_INSTRUCTIONS newest instructions of torch's matrix products (MKL), on Intel CPUs
#   OPENBLAS_CORETYPE       kernels of the matrix products of numpy, scipy and faiss (OpenBLAS)
#   OMP_NUM_THREADS         threads of each of them; the other tests use all cores of this CPU
#
# The runs of one thread share the machine. Qdrant, whose engine these variables do not reach, tests of processes and
# threads, and postings of integers are left out.
#
# Usage: tools/test_processors.sh PYTHON [PYTEST OPTIONS]
set -uo pipefail
cd "$(dirname "$0")/.."
python=$1
shift

export OMP_WAIT_POLICY=passive  # waiting threads yield the CPU
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT

options=("$@")
with() {
  local output="$outputs/${*// /-}"
  env "$@" "$python" -m pytest --quiet -p no:cacheprovider "${options[@]}" tests/model tests/index tests/fusion tests/systems \
    --ignore tests/index/qdrant --ignore tests/index/sharded --ignore tests/model/training/test_training_processes.py \
    --ignore tests/model/test_queries_at_once.py >"$output" 2>&1 || touch "$output.failed"
  echo "== $*"
  tail -n 40 "$output"
}

with OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default &
with OMP_NUM_THREADS=1 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem &
wait
with OMP_NUM_THREADS=2 ATEN_CPU_CAPABILITY=avx2

if compgen -G "$outputs/*.failed" >/dev/null; then
  echo "Tests failed with some of these processors" >&2
  exit 1
fi
