"""One engine with one workload, in a process of its own: `python -m tests.bench.cuda.worker ENGINE WORKLOAD DEVICE`.

It answers requests, one JSON object a line: standard input to standard output. First of all it says that it is ready,
or what failed, and where its results are.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.bench.worker import die_with_parent

#: steps before any is timed, but no more than so many seconds of them
WARMUP, WARMUP_SECONDS = 12, 0.5
#: a burst has this many steps at least and at most
LEAST, MOST = 3, 2000


def main(engine_name: str, workload_name: str, device: str, results: str) -> None:
    """Load the engine, write its results to a file, and answer."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    try:
        from tests.bench.cuda.engines import load
        from tests.bench.cuda.workloads import find

        began = time.perf_counter()
        workload = find(workload_name)
        engine = load(engine_name, workload, device)
        np.savez(results, **engine.results())
        engine.wait()
        _warm_up(engine)
        answer(ready=True, seconds=time.perf_counter() - began, note=engine.note, card=_card(engine_name, device))
    except Exception as error:
        answer(failed=_in_a_line(error))
        return
    for line in sys.stdin:
        try:
            answer(**_measured(engine, json.loads(line), device))
        except Exception as error:
            answer(failed=_in_a_line(error))
            return


def _card(engine_name: str, device: str) -> str:
    """The name of the GPU, from our engine."""
    if engine_name != "graphmill" or device != "gpu":
        return ""
    from toolkit.kernels.cuda.device import device as gpu

    return gpu(0).properties.name


def _in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines[:3])}"[:400]


def _measured(engine: Any, request: dict[str, Any], device: str) -> dict[str, Any]:
    if request["what"] == "steps":
        return {"seconds": burst(engine.run, engine.wait, request["seconds"])}
    if request["what"] == "fed":
        step = engine.fed()
        if step is None:
            return {"seconds": None}
        step()
        step()
        return {"seconds": burst(step, lambda: None, request["seconds"])}
    return {"seconds": _copy_seconds(request["bytes"]) if device == "gpu" else None}


def _warm_up(engine: Any) -> None:
    end = time.perf_counter() + WARMUP_SECONDS
    for _ in range(WARMUP):
        engine.run()
        engine.wait()
        if time.perf_counter() > end:
            return


def burst(step: Callable[[], Any], wait: Callable[[], Any], seconds: float) -> float:
    """Seconds of a step, of as many in a row as fit into so many seconds, waited for at the end."""
    wait()
    start = time.perf_counter()
    step()
    wait()
    count = min(MOST, max(LEAST, math.ceil(seconds / max(time.perf_counter() - start, 1e-6))))
    start = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - start) / count


def _copy_seconds(nbytes: int) -> float:
    """Of a copy by the driver from one place of the card's memory to another, that reads and writes so many bytes."""
    from toolkit.kernels.cuda.device import device as gpu

    context = gpu(0).context
    stream, half = context.stream(), nbytes // 2
    source, target = context.allocate(half), context.allocate(half)
    times: list[float] = []
    try:
        for address in (source, target):
            context.fill(address, 0, half, stream)
        for _ in range(10):
            start, end = context.event(timing=True), context.event(timing=True)
            context.record(start, stream)
            context.copy(target, source, half, stream)
            context.record(end, stream)
            context.synchronize(stream)
            times.append(context.elapsed(start, end) / 1e3)
    finally:
        for address in (source, target):
            context.free(address)
    return min(times)


if __name__ == "__main__":
    main(*sys.argv[1:])
