"""Moving averages of variables in training steps: one launch for those of a rate, with the CPU's bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
SHAPES = [(5,), (3, 4), (1,), (300,)]
STEPS = 4  # launched, recorded, replayed twice


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def _assigned(variable: Any, new: Any, at: int) -> Any:
    old, added = variable * 0.9, new * np.float32(0.1)
    return variable.assign(old + added if at % 2 else added + old)


def _taken_away(variable: Any, new: Any, at: int) -> Any:
    return variable.assign_sub((variable - new) * (0.1 if at % 2 else 0.25))


def _kept(
    device: str, average: Callable[[Any, Any, int], Any], *, resource: bool, then: str
) -> tuple[list[Any], list[str]]:
    """The variables, and what is fetched beside them, after some steps; and what was compiled."""
    rng = np.random.default_rng(8)
    with gm.Graph().as_default() as graph, graph.device(f"/device:{device}:0"):
        x = gm.placeholder(gm.float32, [300])
        variables = [gm.Variable(rng.normal(size=s).astype(np.float32), use_resource=resource) for s in SHAPES]
        updates = [
            average(each, gm.reshape(x[: int(np.prod(shape))] * float(at + 1), shape), at)
            for at, (each, shape) in enumerate(zip(variables, SHAPES, strict=True))
        ]
        with gm.control_dependencies([update.op if hasattr(update, "op") else update for update in updates]):
            after = [each.read_value() if resource else gm.identity(each) for each in variables]
        fetched = {"nothing": [gm.group(updates)], "values": after}[then]
        start = gm.global_variables_initializer()
    found: list[Any] = []
    with Session(graph, devices={"CPU": 1, "GPU": 1}) as session:
        session.run(start)
        for _ in range(STEPS):
            found += [each for each in session.run(fetched, {x: rng.normal(size=300)}) if each is not None]
        found += session.run(variables)
        lines = [line for line in session.explain(fetched, {x: np.zeros(300)}) if "variables as one kernel" in line]
    return found, lines


@pytest.mark.parametrize("then", ["nothing", "values"])
@pytest.mark.parametrize("resource", [True, False], ids=["resources", "references"])
@pytest.mark.parametrize(("average", "rates"), [(_assigned, 1), (_taken_away, 2)], ids=["assigned", "taken away"])
def test_averages_have_the_cpu_s_bits(average: Any, rates: int, resource: bool, then: str) -> None:
    wanted, _ = _kept("CPU", average, resource=resource, then=then)
    found, lines = _kept("GPU", average, resource=resource, then=then)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(lines) == rates, lines
