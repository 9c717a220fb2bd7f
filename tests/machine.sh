#!/bin/sh
# Runs tests as they would run on a lesser machine; all but the first argument go to pytest:
#   sh tests/machine.sh no-onednn|avx2|one-core|busy|half-busy|guard|pages|aarch64 [ARGUMENT ...]
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
machine=${1:-}
[ $# -eq 0 ] || shift
case $machine in
no-onednn)
    export GRAPHMILL_ONEDNN=off
    ;;
avx2)
    # our own code and oneDNN, NumPy's BLAS, and NumPy, whose names for what a processor has change between releases
    export GRAPHMILL_CPU=x86-64-v3 OPENBLAS_CORETYPE=Haswell
    . "$here/../samples/environment.sh"
    use_environment "$(dirname -- "$here")" "[test]" pytest xdist hypothesis tensorflow keras
    NPY_DISABLE_CPU_FEATURES=$(python -c "
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
wide = [name for name in __cpu_dispatch__ if name.startswith(('AVX512', 'X86_V4')) and __cpu_features__[name]]
print(*wide)")
    export NPY_DISABLE_CPU_FEATURES
    ;;
one-core)
    # the first that this process may use, which need not be number 0
    exec python3 -c 'import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execvp("sh", ["sh", *sys.argv[1:]])' "$here/run.sh" -n 1 "$@"
    ;;
busy)
    # a loop that never ends on each core, of which the tests get what is left: a quarter
    exec python3 "$here/busy.py" nice -n 5 sh "$here/run.sh" "$@"
    ;;
half-busy)
    # one such loop, in the way of whatever runs on its core; for the whole suite, which takes an hour and a half otherwise
    exec python3 "$here/busy.py" --cores 1 nice -n 5 sh "$here/run.sh" "$@"
    ;;
guard)
    # zones around every buffer that compiled code is given, looked at after every call
    export GRAPHMILL_GUARD=on
    ;;
pages)
    # the same, and a page that may not be touched behind every tensor: reading or writing there ends the process
    export GRAPHMILL_GUARD=pages
    ;;
aarch64)
    # an emulated 64-bit Arm processor, twenty times slower than this one: for some files at a time, without TensorFlow and
    # oneDNN, which have no wheels for it. What it needs is said in aarch64.sh; GRAPHMILL_AARCH64 names where it is kept
    folder=${GRAPHMILL_AARCH64:-$(dirname -- "$here")/.cache/aarch64}
    sh "$here/aarch64.sh" "$folder"
    unset GRAPHMILL_CPU
    PYTHONPATH=$(dirname -- "$here")
    export PYTHONPATH
    cd "$PYTHONPATH"
    exec "$folder/bin/python" -m pytest "$@"
    ;;
*)
    echo "machine.sh: '$machine' is not a machine; expected no-onednn, avx2, one-core, busy, half-busy, guard, pages or aarch64" >&2
    exit 2
    ;;
esac
exec sh "$here/run.sh" "$@"
