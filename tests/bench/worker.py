"""One engine with one workload, in a process of its own: `python -m tests.bench.worker ENGINE WORKLOAD OPTIONS`.

It answers requests, one JSON object a line: standard input to standard output. `tests.bench.turns` speaks to it, and
stops it while another engine has its turn.

This file, the engines and the workloads are this version's; graphmill itself comes from the folder `--library`.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

#: the feeds of a burst hold at most this much, and are used in turn; memory is only fresh the first time
POOL_BYTES = 32 << 20
#: outputs are kept for the comparison up to this much a burst
KEPT_BYTES = 1 << 20
#: a burst of a slow engine ends early
BURST_SECONDS = 6.0
LEAST_RUNS = 3

#: the packages of graphmill
PACKAGES = ("toolkit", "commands", "schemas")

Values = Sequence[Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.worker")
    parser.add_argument("engine")
    parser.add_argument("workload")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--library", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--first-steps", action="store_true")
    args = parser.parse_args()
    die_with_parent()
    sys.path.insert(0, str(args.library))  # `tests` is imported already and stays what it is
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    from tests.bench.engines import UnsupportedError, load
    from tests.bench.workloads import WORKLOADS

    workload = WORKLOADS[args.workload]
    built = workload.model()
    labels = list(built.info["inputs"])

    def loaded() -> Any:
        return load(args.engine, workload, built, args.threads, args.precision)

    measured: Callable[..., dict[str, Any]]
    try:
        engine = None if args.first_steps else loaded()
        measured = partial(first_step, loaded) if engine is None else partial(burst, engine)
        served = partial(serve, engine)
    except UnsupportedError as error:
        answer(unsupported=str(error))
        return
    came_from(args.library)
    answer(ready=True)
    for line in sys.stdin:
        request = json.loads(line)
        answering = served if "callers" in request else partial(new_shapes, engine) if "shapes" in request else measured
        figures = answering(workload, labels, **request)
        came_from(args.library)
        answer(**figures)


def came_from(library: Path) -> None:
    """Make sure that all of graphmill that is imported is in the folder.

    Raises:
        RuntimeError: a module is from elsewhere: from an installed version, say.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if name.partition(".")[0] in PACKAGES else None
        if file is not None and not Path(file).resolve().is_relative_to(library.resolve()):
            raise RuntimeError(f"{name} came from {file}, not from {library}")


def first_step(
    loaded: Callable[[], Any], workload: Any, labels: Sequence[str], *, seed: int, save: str
) -> dict[str, Any]:
    """Load the engine and run one step, timed together, on the feed drawn from `seed`; its outputs go to `save`.

    Returns:
        "seconds": of the step, in a list; "processor": seconds that all threads took of the processors.
    """
    import numpy as np

    drawn = workload.feeds(np.random.default_rng(seed))
    values = [drawn[label] for label in labels]
    gc.collect()
    start, processor = time.perf_counter(), time.process_time()
    outputs = loaded().step(values)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    np.savez(save, **{f"0.{i}": np.asarray(output) for i, output in enumerate(outputs) if output is not None})
    return {"seconds": [seconds], "processor": processor}


def new_shapes(
    engine: Any, workload: Any, labels: Sequence[str], *, seed: int, shapes: int, save: str
) -> dict[str, Any]:
    """Time so many steps, each on the next feed drawn from `seed` whose shapes have not been there.

    Their outputs go to the file `save`.

    Returns:
        "seconds" of each step, and "processors": seconds that all threads took of the processors.
    """
    import numpy as np

    engine.reset()
    random = np.random.default_rng(seed)
    seen: set[Any] = set()
    kept: dict[str, Any] = {}
    seconds: list[float] = []
    processors: list[float] = []
    while len(seconds) < shapes:
        drawn = workload.feeds(random)
        values = [drawn[label] for label in labels]
        key = tuple(np.shape(value) for value in values)
        if key in seen:
            continue
        seen.add(key)
        gc.collect()
        start, processor = time.perf_counter(), time.process_time()
        outputs = engine.step(values)
        seconds.append(time.perf_counter() - start)
        processors.append(time.process_time() - processor)
        kept |= {f"{len(seconds) - 1}.{i}": np.asarray(each) for i, each in enumerate(outputs) if each is not None}
    np.savez(save, **kept)
    return {"seconds": seconds, "processors": processors}


def die_with_parent() -> None:
    """Have the kernel end this process, stopped or not, when the one that started it is gone."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def burst(
    engine: Any,
    workload: Any,
    labels: Sequence[str],
    *,
    seed: int,
    warmup: int,
    timed: int,
    save: str,
    settle: float = 0,
    least: float = 0,
) -> dict[str, Any]:
    """Reset, warm up and time runs, each on the next feed drawn from `seed`.

    The outputs of the first runs go to the file `save`.

    Args:
        warmup, settle: so many runs, and for so many seconds, before any is timed.
        timed, least: so many runs, and for so many seconds, are timed.

    Returns:
        "seconds": of each timed run, per step of the workload.
    """
    import numpy as np

    engine.reset()
    step, repeat = engine.step, workload.repeat
    random = np.random.default_rng(seed)

    def draw() -> Values:
        drawn = workload.feeds(random)
        return [drawn[label] for label in labels]

    feeds = _pool(draw, (warmup + timed) * repeat)
    kept: list[list[Any]] = []
    kept_bytes = 0
    seconds: list[float] = []
    gc.collect()
    began = time.perf_counter()
    for run in itertools.count():
        values = [next(feeds) for _ in range(repeat)]
        outputs: list[Any] = []
        start = time.perf_counter()
        for value in values:
            outputs = step(value)
        end = time.perf_counter()
        if run >= warmup and start - began >= settle:
            seconds.append((end - start) / repeat)
        elif end - began > settle + BURST_SECONDS / 2 and run < warmup - 1:
            warmup = run + 1
        if len(kept) < 2 or kept_bytes < KEPT_BYTES:
            kept.append([np.asarray(output) for output in outputs if output is not None])
            kept_bytes += sum(array.nbytes for array in kept[-1])
        if len(seconds) >= timed and repeat * sum(seconds) >= least:
            break
        if end - began > settle + least + BURST_SECONDS and len(seconds) >= LEAST_RUNS:
            break
    np.savez(save, **{f"{run}.{i}": array for run, arrays in enumerate(kept) for i, array in enumerate(arrays)})
    return {"seconds": seconds}


def serve(
    engine: Any,
    workload: Any,
    labels: Sequence[str],
    *,
    callers: int,
    seconds: float,
    seed: int,
    save: str,
    coalesced: bool = False,
) -> dict[str, Any]:
    """So many threads call the engine again and again, each with a feed of its own; their outputs go to `save`.

    Args:
        coalesced: requests at the same time run as one step.

    Returns:
        "seconds": that each step took, of those that began after the first half second; "processor": seconds a step,
        all callers together.
    """
    import threading

    import numpy as np

    random = np.random.default_rng(seed)
    feeds = [[workload.feeds(random)[label] for label in labels] for _ in range(callers)]
    kept: list[Any] = [None] * callers
    taken: list[tuple[float, float]] = []
    failed: list[BaseException] = []
    begin = threading.Barrier(callers)
    step = engine.coalesced() if coalesced else engine.step

    def call(number: int) -> None:
        try:
            kept[number] = step(feeds[number])
            begin.wait()
            end = time.perf_counter() + seconds
            while (start := time.perf_counter()) < end:
                step(feeds[number])
                taken.append((start, time.perf_counter()))
        except BaseException as error:
            failed.append(error)
            begin.abort()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    named = {f"{n}.{i}": each for n, outputs in enumerate(kept) for i, each in enumerate(outputs) if each is not None}
    np.savez(save, **{name: np.asarray(each) for name, each in named.items()})
    first = min(start for start, _ in taken) + min(0.5, seconds / 4)
    counted = sorted((start, end) for start, end in taken if start >= first)
    whole = max(end for _, end in counted) - counted[0][0]
    return {"seconds": [end - start for start, end in counted], "processor": whole / len(counted)}


def _pool(draw: Callable[[], Values], count: int) -> Iterator[Values]:
    """Feeds without end: `count` of them drawn now if they are small, else as many as the pool holds."""
    pool: list[Values] = []
    held = 0
    while len(pool) < count and (held < POOL_BYTES or len(pool) < 2):
        pool.append(draw())
        held += sum(array.nbytes for array in pool[-1])
    while True:
        yield from pool


if __name__ == "__main__":
    main()
