#!/bin/sh
# What only a GPU can show, step by step, each within a time of its own; a summary comes last.
#
#   sh tests/gpu/hardware.sh [STEP[=SECONDS]...]     without steps: devices smoke questions ops tests bench sanitizer
#
#   devices    what `graphmill devices` finds
#   smoke      calls of the driver, one by one
#   questions  what is assumed of the card and of NVIDIA's libraries, and what is the case
#   ops        every case of the op suite that has a kernel for GPUs, beside the CPU
#   tests      pytest -m gpu
#   bench      python -m tests.bench --suite cuda: beside PyTorch and JAX where they are
#   sanitizer  compute-sanitizer over a sample of the op suite: memcheck, racecheck, ...
#   roofline   the launches of each network, and what the card's memory and arithmetic allow
#
# Nothing is fetched from anywhere. First of all come the packages: what is missing is told, or installed from WHEELS.
#
# Environment: OUT, where logs and tables go (hardware-out); PYTHON (python3); WHEELS, a folder of wheels that are
# installed into OUT/site; SITE, folders with packages that are not installed, separated by colons; JOBS, processes of
# ops and tests (8); BENCH, further arguments of the bench; TOTAL, seconds for all steps together, of which each gets
# what is left; GO_ON=1, leave out steps that passed before, as OUT's summary says; ARCHIVE, a .tgz of OUT that is
# written behind each step.
set -u
cd "$(dirname "$0")/../.."
out=${OUT:-$PWD/hardware-out}
python=${PYTHON:-python3}
jobs=${JOBS:-8}
begun=$(date +%s)
mkdir -p "$out"
export PYTHONPATH="$PWD${SITE:+:$SITE}${PYTHONPATH:+:$PYTHONPATH}"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# processes share the processors: threads that spin while they wait slow the others down
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-2}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}"
# a thousand small cases are not measured each; questions and the bench are
unmeasured=TF_CUDNN_USE_AUTOTUNE=0
summary="$out/summary.txt"
before=
[ "${GO_ON:-}" = 1 ] && [ -f "$summary" ] && before=$(cat "$summary")
: >"$summary"

# run NAME SECONDS COMMAND...: with a log, and a line of the summary
run() {
    name=$1 seconds=$2
    shift 2
    log="$out/$name.log"
    passed=$(printf '%s\n' "$before" | grep "^$name  *0 ")
    if [ -n "$passed" ]; then
        echo "$passed" >>"$summary"
        return
    fi
    if [ -n "${TOTAL:-}" ]; then
        left=$((TOTAL - $(date +%s) + begun))
        if [ "$left" -lt 5 ]; then
            echo "$name: no time left of $TOTAL s" | tee -a "$summary"
            return
        fi
        [ "$left" -lt "$seconds" ] && seconds=$left
    fi
    start=$(date +%s)
    timeout -k 5 "$seconds" "$@" >"$log" 2>&1
    code=$?
    took=$(($(date +%s) - start))
    last=$(grep -v '^ *$' "$log" | tail -n 1 | cut -c1-300)
    [ "$code" = 124 ] && last="not done after $seconds s; $last"
    printf '%-18s %3s  %4s s  %s\n' "$name" "$code" "$took" "$last" | tee -a "$summary"
    pack
}

pack() {
    [ -n "${ARCHIVE:-}" ] || return 0
    tar czf "$ARCHIVE.part" -C "$out" --exclude=./site . && mv "$ARCHIVE.part" "$ARCHIVE"
}

packages() {
    if [ -n "${WHEELS:-}" ]; then
        run wheels 60 "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
            --target "$out/site" "$WHEELS"/*.whl
        export PYTHONPATH="$PYTHONPATH:$out/site"
    fi
    run packages 30 "$python" -m tests.gpu.packages
}

sanitizer() {
    tool=$(command -v compute-sanitizer 2>/dev/null) ||
        tool=$(find /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer ${SITE:+$(echo "$SITE" | tr : ' ')} \
            -name compute-sanitizer -type f 2>/dev/null | head -n 1)
    if [ -z "$tool" ]; then
        echo "sanitizer          not run: no compute-sanitizer here" | tee -a "$summary"
        return
    fi
    for check in memcheck racecheck synccheck initcheck; do
        most=1
        [ "$check" = memcheck ] && most=2
        run "sanitizer-$check" "$1" "$tool" --tool "$check" --error-exitcode 9 --target-processes all --print-limit 20 \
            env $unmeasured "$python" -m tests.kernels.beside_cpu GPU --most $most --seconds "$(($1 > 30 ? $1 - 15 : $1 / 2))"
        grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/sanitizer-$check.log" | tail -n 1 | tee -a "$summary"
    done
}

packages
[ $# -gt 0 ] || set -- devices smoke questions ops tests bench sanitizer
for step in "$@"; do
    seconds=${step#*=}
    [ "$seconds" = "$step" ] && seconds=
    case ${step%%=*} in
    devices) run devices "${seconds:-30}" "$python" -m commands.main devices ;;
    smoke) run smoke "${seconds:-60}" "$python" -m tests.gpu.smoke ;;
    questions) run questions "${seconds:-90}" "$python" -m tests.gpu.questions ;;
    ops)
        limit=${seconds:-150}
        run ops "$limit" env $unmeasured "$python" -m tests.kernels.beside_cpu GPU --jobs "$jobs" --seconds "$((limit - 10))" \
            --json "$out/ops.json"
        ;;
    tests)
        run tests "${seconds:-150}" env $unmeasured "$python" -m pytest -m gpu -q --maxfail 30 -p no:cacheprovider \
            -p no:benchmark -n "$jobs" --deselect tests/kernels/gpu/test_op_suite.py \
            tests/gpu tests/kernels/gpu tests/kernels/cuda
        ;;
    sanitizer) sanitizer "${seconds:-60}" ;;
    bench)
        limit=${seconds:-170}
        # shellcheck disable=SC2086 # several arguments
        run bench "$limit" "$python" -m tests.bench --suite cuda --seconds "$((limit > 40 ? limit - 20 : limit / 2))" \
            --json "$out/bench.json" --markdown "$out/bench.md" ${BENCH:-}
        ;;
    roofline) run roofline "${seconds:-60}" "$python" -m tests.bench.cuda_roofline ;;
    *) echo "hardware.sh: there is no step '$step'" >&2 && exit 2 ;;
    esac
done
echo "== summary ($out)"
cat "$summary"
pack
grep -q 'FAILED\|no time left\|^[a-z-]* *[1-9][0-9]* ' "$summary" && exit 1
exit 0
