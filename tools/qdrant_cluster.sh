#!/usr/bin/env bash
# Two peers of a Qdrant server on this machine, for the tests of Qdrant, until Ctrl-C.
#
#   tools/qdrant_cluster.sh BINARY     prints the value of MATHAMR_QDRANT_URL when both peers are ready
#
# Their files and logs lie in a temporary folder that is removed at the end. PORT is the first port (6333); the peers
# listen on loopback only, at PORT to PORT + 2 and PORT + 10 to PORT + 12: for HTTP, for gRPC, for each other.
set -euo pipefail
[ $# -eq 1 ] && [ -x "$1" ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
binary=$(realpath "$1") port=${PORT:-6333} folder=$(mktemp -d) peers=()

finish() {
  [ ${#peers[@]} -eq 0 ] || kill "${peers[@]}" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

peer() {
  local http=$1
  shift
  mkdir "$folder/$http"
  (
    cd "$folder/$http"
    export QDRANT__CLUSTER__ENABLED=true QDRANT__CLUSTER__P2P__PORT=$((http + 2)) QDRANT__TELEMETRY_DISABLED=true
    export QDRANT__SERVICE__HOST=127.0.0.1 QDRANT__SERVICE__HTTP_PORT=$http QDRANT__SERVICE__GRPC_PORT=$((http + 1))
    exec "$binary" --uri "http://127.0.0.1:$((http + 2))" "$@" >log 2>&1
  ) &
  peers+=($!)
  for _ in {1..120}; do
    curl --silent --fail --output /dev/null "http://127.0.0.1:$http/readyz" && return
    kill -0 "${peers[-1]}" 2>/dev/null || break
    sleep 0.5
  done
  echo "the peer at port $http did not become ready:" >&2
  tail -n 20 "$folder/$http/log" >&2
  exit 1
}

peer "$port"
peer $((port + 10)) --bootstrap "http://127.0.0.1:$((port + 2))"
echo "MATHAMR_QDRANT_URL=http://127.0.0.1:$port,http://127.0.0.1:$((port + 10))"
wait
