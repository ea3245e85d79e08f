#!/usr/bin/env bash
# Everything that needs a GPU, in one command: benchmarks compared with the CPU, tests, full-size trainings, one report.
#
#   tools/gpu.sh ARQMATH_FOLDER WORK [PAIRS.jsonl.gz …]     pairs from outside train the text encoders, too
#   DEVICE=cpu PART=10 tools/gpu.sh ARQMATH_FOLDER WORK     a rehearsal without one: only benchmarks, at a tenth of the size
#
# YEARS are those whose topics are measured (2020,2022), PYTHON is the one of the environment. A step that is finished is
# not repeated, so the same command goes on where it was stopped; a step that fails is named in the report, and the
# others follow. Trainings use a GPU by themselves, and are left out where there is none.
set -uo pipefail
[ $# -ge 2 ] && [ -d "$1" ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
collection=$(realpath "$1") work=$(mkdir -p "$2" && realpath "$2") python=$(command -v "${PYTHON:-python}")
device=${DEVICE:-cuda} part=${PART:-1} years=${YEARS:-2020,2022}
pairs=()
for file in "${@:3}"; do pairs+=(--pairs "$(realpath "$file")"); done
cd "$(dirname "$0")/.."
mkdir -p "$work/steps"

step() {
  local name=$1 log="$work/steps/$1.log"
  shift
  [ -e "$work/steps/$name.done" ] && return
  echo "== $name: $*" >&2
  if { echo "\$ $*"; "$@"; } >"$log.part" 2>&1; then touch "$work/steps/$name.done"; else echo "FAILED with $?" >>"$log.part"; fi
  mv "$log.part" "$log"
}
study() {
  local name=$1
  shift
  step "${name//\//-}" "$python" -m studies "$name" "$collection" --preset full --workdir "$work/${name%%/*}" --quiet "$@"
}

documents=$((1370000 / part))
step rgcn-cpu "$python" benchmarks/rgcn.py --graphs $((64 / part + 1))
step maxsim-cpu "$python" benchmarks/maxsim.py --batch $((256 / part))
step search-cpu "$python" benchmarks/search.py --documents "$documents" --folder "$work" --no-peers --only colbert
step graphs "$python" -m pyterrier_mathamr graphs "$collection" -o "$work/graphs.mathamr" --quiet
step train-cpu "$python" benchmarks/train.py "$work/graphs.mathamr" "$collection" --pairs $((1024 / part))

if [ "$device" != cpu ]; then
  step tests "$python" -m pytest -m gpu
  step rgcn "$python" benchmarks/rgcn.py --device "$device"
  step maxsim "$python" benchmarks/maxsim.py --device "$device"
  step search "$python" benchmarks/search.py --documents "$documents" --folder "$work" --device "$device" --only colbert brute
  step train "$python" benchmarks/train.py "$work/graphs.mathamr" "$collection" --device "$device" --set bases=256
  seeds=(--years "$years" --seeds 42,43,44)
  study best/text "${seeds[@]}" "${pairs[@]}"
  study answers/colbert "${seeds[@]}" "${pairs[@]}"
  study answers/marf "${seeds[@]}" "${pairs[@]}"
  study formula/in-out "${seeds[@]}"
  for table in 4.6 4.9 4.10 4.13 4.15 4.17 4.19; do study "paper/$table"; done
fi

{
  echo "# Measured on $device"
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
  for log in "$work"/steps/*.log; do
    printf '\n## %s\n\n```\n%s\n```\n' "$(basename "$log" .log)" "$(tr '\r' '\n' <"$log" | grep -v '%|')"
  done
} >"$work/report.md"
echo "$work/report.md"
! grep -q '^FAILED' "$work"/steps/*.log
