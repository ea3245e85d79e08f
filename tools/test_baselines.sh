#!/usr/bin/env bash
# Install Terrier, PISA and Anserini into build/baselines, over the packages of another environment, and run the tests
# that combine them with this package. Terrier and Anserini need Java 21 or later: of JAVA_HOME, or the first in
# /usr/lib/jvm; without one, their tests are skipped, or fail where MATHAMR_BASELINES is "required". Terrier's jars are
# kept in ~/.pyterrier.
#
# Usage: tools/test_baselines.sh PYTHON [PYTEST OPTIONS]
set -euo pipefail
cd "$(dirname "$0")/.."
base=$1
shift

for home in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null || true)
  if [ "${version:-0}" -ge 21 ]; then export JAVA_HOME=$home; break; fi
done
export OPENAI_API_KEY=${OPENAI_API_KEY:-unused}  # pyserini cannot be imported without one

python=build/baselines/bin/python
test -x $python || "$base" -m venv build/baselines
"$base" -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
  >"$($python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/base.pth"
$python -m pip install --quiet --constraint constraints.txt --editable '.[baselines]' --editable ./systems
$python -c "import pyterrier; pyterrier.java.init()" || test "${MATHAMR_BASELINES:-}" != required  # fetches Terrier's jars

# Java raises and handles signals by which faulthandler would report a crash.
OMP_NUM_THREADS=1 $python -m pytest --quiet -p no:faulthandler tests/package/test_other_engines.py "$@"
