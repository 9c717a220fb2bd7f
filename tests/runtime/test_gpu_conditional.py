"""Loops and branches that tensors decide, as conditional nodes of a step's CUDA graph, on the fake driver."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import Session
from toolkit import client as gm
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import CONDITIONS_FROM
from toolkit.kernels.cuda.driver.fake import FakeDriver

CPU, GPU = "/device:CPU:0", "/device:GPU:0"
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def large(x: Any, limit: float = 0.5) -> Any:
    return gm.reduce_sum(gm.square(x)) > limit


def halving(x: Any) -> Any:
    """As many iterations as the numbers want; none where they are small."""
    return gm.while_loop(lambda y: large(y), lambda y: [y * 0.75], [x])


def counting(x: Any) -> Any:
    """A counter of the host beside it, which ends the loop, too, and is asked for."""
    i, y = gm.while_loop(
        lambda i, y: gm.ops.logical_and(i < 5, large(y, 0.01)), lambda i, y: [i + 1, y * 0.75], [gm.constant(0), x]
    )
    return [i, y]


def swapping(x: Any) -> Any:
    """States that change places, and one that is the other's old value."""
    a, b, c = gm.while_loop(
        lambda a, b, c: large(a, 0.1), lambda a, b, c: [b * 0.5, a, b], [x, x * 2.0, x * 0.0]
    )  # fmt: skip
    return [a, b, c]


def nested(x: Any) -> Any:
    """The inner loop's count is other in each iteration of the outer one."""

    def body(y: Any, n: Any) -> Any:
        z, m = gm.while_loop(lambda z, m: large(z, 2.0), lambda z, m: [z * 0.5, m + 1.0], [y * 3.0, n])
        return [z * 0.75, m]

    y, n = gm.while_loop(lambda y, n: large(y, 0.6), body, [x, gm.constant(np.float32(0))])
    return [y, n]


def branch(x: Any) -> Any:
    return gm.cond(gm.reduce_sum(x) > 1.0, lambda: gm.exp(x) * 2.0, lambda: x - 1.0)


def branch_within_a_loop(x: Any) -> Any:
    def body(y: Any) -> Any:
        return [gm.cond(gm.reduce_max(y) > 0.7, lambda: y * 0.25, lambda: y * 0.9 - 0.001)]

    return gm.while_loop(lambda y: large(y, 0.3), body, [x])


def loop_on_a_branch(x: Any) -> Any:
    return gm.cond(gm.reduce_sum(x) > 1.0, lambda: halving(x), lambda: x - 1.0)


def products(x: Any) -> Any:
    """Library calls in the body, and what no iteration changes."""
    w = gm.constant(np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    scaled = gm.tanh(x)
    return gm.while_loop(lambda y: large(y, 1.2), lambda y: [gm.matmul(y, w) + scaled * 0.1], [x])


def counter_as_a_tensor(x: Any) -> Any:
    """The counter is computed with on the device."""

    def body(i: Any, y: Any) -> Any:
        return [i + 1, y * 0.5 + gm.cast(i, gm.float32) * 0.01]

    return gm.while_loop(lambda i, y: large(y, 0.3), body, [gm.constant(0), x])[1]


GRAPHS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        halving, counting, swapping, nested, branch, branch_within_a_loop, loop_on_a_branch, products,
        counter_as_a_tensor,
    )
}  # fmt: skip
FED = [X, X * 0.01, X * 2 + 0.5, np.abs(X), -np.abs(X), X * 1.5]


class Steps:
    """Steps of a graph on a fake GPU, and beside them on the CPU.

    Attributes:
        replays: how many CUDA graphs were launched.
    """

    def __init__(self, make: Callable[[Any], Any], *, seed: int = 0, version: int = CONDITIONS_FROM):
        self.driver = FakeDriver(seed=seed, version=version)
        self.replays = 0
        context = self.driver.open(0)
        replay = context.replay

        def counted(*given: Any) -> None:
            self.replays += 1
            replay(*given)

        context.replay = counted
        self._steps = {there: self._made(make, there) for there in (CPU, GPU)}
        self.session = self._steps[GPU][0]

    def _made(self, make: Callable[[Any], Any], there: str) -> tuple[Session, Any, Any]:
        with gm.Graph().as_default() as graph, graph.device(there), choose.using(self.driver):
            x = gm.placeholder(gm.float32, [4, 3])
            fetched = make(x)
            return Session(graph, devices={"CPU": 1, "GPU": 1}), x, fetched

    def run(self, there: str, x: Any) -> list[Any]:
        """What a step gives."""
        session, placeholder, fetched = self._steps[there]
        with choose.using(self.driver):
            found = session.run(fetched, {placeholder: x})
        return found if isinstance(found, list) else [found]

    def compare(self, x: Any) -> None:
        """A step there, beside the CPU's."""
        for found, wanted in zip(self.run(GPU, x), self.run(CPU, x), strict=True):
            assert found.dtype == wanted.dtype
            # a dozen roundings of numbers around 1
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

    @property
    def notes(self) -> list[str]:
        return [note for note in self.session.notes() if "launch by launch" in note or "host decides" in note]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_one_launch_that_gives_the_cpus_numbers(name: str, seed: int) -> None:
    steps = Steps(GRAPHS[name], seed=seed)
    for x in FED:
        steps.compare(x)
    assert steps.notes == [] and steps.replays == len(FED) - 1, "all steps but the first are replays"


def test_an_older_driver_lets_the_host_decide() -> None:
    steps = Steps(halving, version=12020)
    for x in FED:
        steps.compare(x)
    told = "NVIDIA's driver is for CUDA 12.2; graphs have conditional nodes from 12.4 on"
    assert not steps.replays and any(told in note for note in steps.notes)
