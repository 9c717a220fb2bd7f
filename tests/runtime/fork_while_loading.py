"""A process that forks while its threads load models and take first steps of sessions; what becomes of its children.

`python -m tests.runtime.fork_while_loading MODEL SEED` prints how many children ran the model, how many hung, with the
functions that they hung in, and how many failed.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

from tests.patience import HUNG
from toolkit.runtime.jobs.loading import load
from toolkit.runtime.session import Session

#: threads of the parent that load and run meanwhile, and children
THREADS, CHILDREN = 3, 6
#: seconds in which forks are begun: a process imports, loads and compiles a small network in about so many
SPREAD = 2.0


def load_and_run(model: str) -> bool:
    """What the parent's threads do, and every child; whether the model gave numbers."""
    graph = load(model).model.graph
    x = next(node for node in graph.nodes if node.op == "Placeholder")
    with Session(graph, threads=2) as session:
        found: Any = session.run(
            f"{graph.nodes[-1].name}:0", {f"{x.name}:0": np.ones(x.attr("shape").as_list(), np.float32)}
        )
        return bool(np.all(np.isfinite(found)))


def _fork(model: str, patience: float) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)  # says where it hung, and ends it
        signal.alarm(int(patience))
        code = 0 if load_and_run(model) else 2
    except BaseException as error:
        print(f"a child failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def fork_at_random(model: str, seed: int, patience: float = HUNG) -> bool:
    """Fork at random moments, and print what the children did; whether all ran the model."""
    draw = random.Random(seed)
    moments = sorted(draw.uniform(0, SPREAD) for _ in range(CHILDREN))
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            load_and_run(model)

    for _ in range(THREADS):
        threading.Thread(target=work, daemon=True).start()
    start = time.monotonic()
    children: list[int] = []
    for moment in moments:
        time.sleep(max(0.0, start + moment - time.monotonic()))
        children.append(_fork(model, patience))
    over.set()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    hung, failed = sum(code < 0 for code in codes), sum(code > 0 for code in codes)
    print(f"{len(codes)} children, {hung} hung, {failed} failed", flush=True)
    return not hung and not failed


if __name__ == "__main__":
    os._exit(0 if fork_at_random(sys.argv[1], int(sys.argv[2])) else 1)  # threads are not waited for
