"""python -m tests.bench.lines WORKLOAD: where a step of a workload spends its time, line by line of its plan.

Every line of the generated functions is timed where it stands (which costs 0.1 us a line); the steps of a loop that is
machine code are run by themselves, over and over, on small random numbers.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.bench.engines import OURS, load
from tests.bench.workloads import WORKLOADS
from toolkit.compiler.backends.cpu.emission import instance
from toolkit.compiler.backends.cpu.loops.native_loop import NativeInstance, NativeLoop
from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cpu.onednn.library import library

_COMPOUND = ("if ", "else", "elif ", "while ", "for ", "return", "break", "continue", "try", "def ", "raise", "with ")
_AGAIN = 50  # times a step of a loop is run by itself


@dataclass
class Timed:
    """A line of a plan, or a step of a compiled loop.

    Attributes:
        seconds: of each step of the workload, the first ones included.
    """

    text: str
    what: str
    seconds: list[float] = field(default_factory=list[float])
    now: float = 0.0


class Lines:
    """Takes the place of the functions that plans generate, from now on."""

    def __init__(self) -> None:
        self.lines: list[Timed] = []
        self.loops: list[tuple[NativeLoop, NativeInstance]] = []
        self._instantiate: Callable[[Any], Any] = instance.Emitted.instantiate
        self._native: Callable[[Any], Any] = NativeLoop.instantiate
        instance.Emitted.instantiate = lambda emitted: self._timed(emitted)  # type: ignore[method-assign]
        NativeLoop.instantiate = lambda loop: self._noted(loop)  # type: ignore[method-assign]

    def close(self) -> None:
        """Put back what was there."""
        instance.Emitted.instantiate = self._instantiate  # type: ignore[method-assign]
        NativeLoop.instantiate = self._native  # type: ignore[method-assign]

    def next_step(self) -> None:
        """A step of the workload has ended."""
        for line in self.lines:
            line.seconds.append(line.now)
            line.now = 0.0

    def _timed(self, emitted: instance.Emitted) -> Any:
        made = self._instantiate(emitted)
        implementations = emitted.primitives()
        written: list[str] = []
        for number, text in enumerate(emitted.source.splitlines()):
            body = text.lstrip()
            if number == 0 or body.startswith(_COMPOUND):
                written.append(text)
                continue
            owner = emitted.owners[number]
            timed = Timed(body, _described(owner, implementations))
            self.lines.append(timed)
            name = f"t_{number}"
            made.namespace[name] = timed
            indent = text[: len(text) - len(body)]
            written += [f"{indent}t_ = clock()", text, f"{indent}{name}.now += clock() - t_"]
        made.namespace["clock"] = time.perf_counter
        exec("\n".join(written), made.namespace)
        made.run = made.namespace["run"]
        return made

    def _noted(self, loop: NativeLoop) -> Any:
        made = self._native(loop)
        self.loops.append((loop, made))
        return made


def _described(owner: Operation | None, implementations: dict[Operation, list[str]]) -> str:
    if owner is None:
        return ""
    takes = " ".join(f"{list(value.shape or ())}" for value in owner.inputs[:4])
    makes = " ".join(f"{value.dtype}{list(value.shape or ())}" for value in owner.outputs[:2])
    nodes = "+".join(dict.fromkeys(step.node.op for step in owner.steps))
    return f"{owner.kind} {takes} -> {makes}  {nodes}  {','.join(dict.fromkeys(implementations.get(owner, ())))}"


def turn(loop: NativeLoop, made: NativeInstance) -> Iterator[Timed]:
    """The steps of a turn, each run by itself."""
    emitter = loop.emitter
    emitted_by = {operation: [primitive.implementation] for operation, primitive in emitter.chosen}
    for step, owner in zip(emitter.steps, emitter.owners, strict=False):
        match step[0]:
            case "function":
                call = functools.partial(step[2].call, made.namespace[step[1]])
            case "primitive":
                call = functools.partial(_onednn().execute, *made.namespace[step[1]])
            case _:
                continue
        yield Timed(step[0], _described(owner, emitted_by), [_alone(call, made.arena)])


def _alone(call: Callable[[], Any], arena: Any) -> float:
    numbers = arena[: len(arena) // 4 * 4].view(np.float32)
    fresh: Any = np.random.default_rng(0).uniform(-1, 1, numbers.shape)
    seconds: list[float] = []
    for _ in range(_AGAIN):
        numbers[:] = fresh  # what is added up in place would grow into numbers that are slow
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def _onednn() -> Any:
    found = library()
    assert found is not None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lines", description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS, metavar="WORKLOAD")
    parser.add_argument("--top", type=int, default=30, help="lines to show (30)")
    parser.add_argument("--steps", type=int, default=60, help="steps to run (60)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    workload = WORKLOADS[args.workload]
    built = workload.model()
    lines = Lines()
    engine = load(OURS, workload, built, args.threads, workload.precision)
    random = np.random.default_rng(0)
    whole: list[float] = []
    for _ in range(args.steps):
        drawn = workload.feeds(random)
        values = [drawn[label] for label in built.info["inputs"]]
        began = time.perf_counter()
        engine.step(values)
        whole.append(time.perf_counter() - began)
        lines.next_step()
    print(f"{args.workload}: {_half(whole):.1f} us a step, lines included")
    _show(lines.lines, args.top)
    for loop, made in lines.loops:
        print(f"\na turn of {loop.emitter.block.operations[0].name}")
        _show(list(turn(loop, made)), args.top)


def _half(seconds: Sequence[float]) -> float:
    """The median of the second half, in microseconds."""
    return 1e6 * statistics.median(seconds[len(seconds) // 2 :])


def _show(lines: Sequence[Timed], top: int) -> None:
    total = sum(_half(line.seconds) for line in lines) or 1.0
    print(f"{total:.1f} us in {len(lines)} lines")
    for line in sorted(lines, key=lambda line: -_half(line.seconds))[:top]:
        print(f"{_half(line.seconds):9.1f} us {_half(line.seconds) / total:6.1%}  {line.text:<24.24} {line.what}")


if __name__ == "__main__":
    main()
