"""What a recorded step costs the host: microseconds of processor time, on a driver whose calls do nothing.

    python -m tests.bench.cuda.host_time [--against FOLDER] [--rounds 15] [--steps 500]

A step of the suite's small network is recorded and replayed by a driver that takes no time, so that what remains is
Python: of the session, the executor, copies and the check whether the recording still fits. Another checkout is
measured in turns with this one; the ratio is the median over the rounds. On a GPU the same steps take longer by the
driver's calls, which `python -m tests.bench --suite cuda --only small` shows.
"""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

_WORKER = "--worker"
_WARM = 50  # steps before the first round: recorded in the second, allocations settled long before


def null_driver() -> Any:
    """A driver whose calls return at once; what they should have computed is whatever was in memory."""
    from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver, FakeGraph

    def nothing(*_: Any, **__: Any) -> None:
        pass

    class NullContext(FakeContext):
        poisons = False
        synchronize = record = wait = copy_in = copy_in_bytes = copy_out = copy = fill = launch = nothing
        begin_capture = submit = replay = nothing

        def done(self, event: Any) -> bool:
            return True

        def end_capture(self, stream: Any) -> Any:
            return FakeGraph([])

    class NullDriver(FakeDriver):
        def __init__(self) -> None:
            super().__init__()
            self._contexts = [NullContext(0, self._properties, self._schedule)]

    return NullDriver()


def steps() -> dict[str, Callable[[], Any]]:
    """The steps that are measured, by name, each ready to be run."""
    from toolkit import Session
    from toolkit import client as gm

    random = np.random.default_rng(1)

    def array(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    with gm.Graph().as_default() as graph, graph.device("/device:GPU:0"):
        weights = [gm.Variable(array(*shape), use_resource=True) for shape in ((64, 64), (64,), (64, 64), (64,))]

        def network(x: Any) -> Any:
            w0, b0, w1, b1 = (one.value() for one in weights)
            return gm.bias_add(gm.matmul(gm.relu(gm.bias_add(gm.matmul(x, w0), b0)), w1), b1)

        held = gm.Variable(array(8, 64), use_resource=True, trainable=False)
        kept = gm.Variable(array(8, 64), use_resource=True, trainable=False).assign(network(held.value())).op
        given, labels = gm.placeholder(gm.float32, [8, 64]), gm.placeholder(gm.int64, [8])
        logits = network(given)
        loss = gm.reduce_mean(gm.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        learned = gm.train.GradientDescent(0.01).minimize(loss, var_list=weights)
        begin = gm.global_variables_initializer()
    session = Session(graph, devices={"CPU": 1, "GPU": 1})
    session.run(begin)
    x, y = array(8, 64), random.integers(0, 64, 8)
    run, fed = session.make_callable(kept), session.make_callable(logits, [given])
    train = session.make_callable([loss, learned], [given, labels])
    return {
        "nothing fed": run,
        "fed and fetched": lambda: fed(x),
        "by Session.run": lambda: session.run(logits, {given: x}),
        "training, loss fetched": lambda: train(x, y),
    }


def _work() -> None:
    """Measure what each line of stdin asks for: a name and how many times."""
    from toolkit.kernels.cuda.driver import choose

    with choose.using(null_driver()):
        made = steps()
        for step in made.values():
            for _ in range(_WARM):
                step()
        print(json.dumps(list(made)), flush=True)
        for line in sys.stdin:
            name, count = json.loads(line)
            step = made[name]
            start = time.process_time()
            for _ in range(count):
                step()
            print((time.process_time() - start) / count * 1e6, flush=True)


class _Version:
    """A process with one version of graphmill."""

    def __init__(self, folder: Path):
        self._process = subprocess.Popen(
            [sys.executable, __file__, _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        self.names: list[str] = json.loads(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def measure(self, name: str, count: int) -> float:
        """Microseconds of a step."""
        assert self._process.stdin is not None
        print(json.dumps([name, count]), file=self._process.stdin, flush=True)
        return float(self._answer())

    def close(self) -> None:
        self._process.communicate()


def main(arguments: list[str]) -> None:
    """Print a line for each step."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cuda.host_time")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=500, help="in each round")
    given = parser.parse_args(arguments)
    folders = [Path(__file__).resolve().parents[3], *([given.against] if given.against else [])]
    versions = [_Version(folder) for folder in folders]
    for name in versions[0].names:
        rounds = [[version.measure(name, given.steps) for version in versions] for _ in range(given.rounds)]
        line = f"{name:24} {median(each[0] for each in rounds):7.1f} us"
        if given.against:
            ratio = median(each[0] / each[1] for each in rounds)
            line += f"   {median(each[1] for each in rounds):7.1f} us there, ratio {ratio:.2f}"
        print(line, flush=True)
    for version in versions:
        version.close()


if __name__ == "__main__":
    if sys.argv[1:] == [_WORKER]:
        _work()
    else:
        main(sys.argv[1:])
