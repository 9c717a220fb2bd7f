"""Steps whose numbers are checked: compiled, and node by node once more where something is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.plan import Plan, SharedPlan
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role
from toolkit.errors import InvalidArgumentError
from toolkit.graph.node import Node
from toolkit.kernels.context import RefVariable
from toolkit.kernels.resources.variables import Cell, Variable
from toolkit.runtime.executors.tokens import TokenExecutor
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.probes.numerics import statistics
from toolkit.runtime.steps.step import DeviceStep


def run_checked(plan: Plan | SharedPlan, program: Program, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
    """Run a plan, and say which node is to blame where a value in it is not finite.

    The plan runs to its end. Then the variables get back what they held before, and the nodes run one by one, without
    sending anything again: the probe fails the step at the one that makes the first such value. A step in which all of
    them come from others (masks of infinities, say) is over as it was. What draws random numbers or takes from queues
    does so once more.

    Raises:
        InvalidArgumentError: a node makes a NaN or an infinity of finite inputs.
    """
    assert running.probe is not None
    before = _variables(running)
    bad: list[Operation] = []
    results = plan.run(arguments, running, bad)
    if not bad:
        return results
    after = _variables(running)
    _put_back(before)
    alone = running.sibling()
    alone.probe = seen = _Seen(running.probe)
    executor = TokenExecutor(program)
    for item in executor.nodes:
        if item.role is Role.SEND:
            item.step = replace(item.step, compute=_sent)
    executor.run(arguments, alone)
    if not seen.is_any:
        names = ", ".join(dict.fromkeys(step.node.name for step in bad[0].steps))
        raise InvalidArgumentError(
            f"compiled together, {names} make values that are not finite; node by node they do not",
            node=bad[0].name,
        )
    _put_back(after)
    return results


class _Seen:
    """A probe that looks at nodes run one by one, and whether one of them has made what is not finite."""

    def __init__(self, probe: Probe):
        self._probe = probe
        self.is_any = False

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """See `Probe.ran`."""
        found = (statistics(value) for value in outputs)
        self.is_any = self.is_any or any(each is not None and bool(each.nans or each.infinities) for each in found)
        self._probe.ran(node, device, start_ns, end_ns, inputs, outputs)


def _sent(*_: Any) -> None:
    """Whoever waits for it has it."""


def _variables(running: DeviceStep) -> list[tuple[Cell, Any]]:
    """The variables with what they hold; while somebody else has an array, writers make another one."""
    cells: list[Cell] = [*running.resources.all_of(RefVariable), *running.resources.all_of(Variable)]
    return [(cell, cell.value) for cell in cells]


def _put_back(held: Sequence[tuple[Cell, Any]]) -> None:
    for cell, value in held:
        with cell.lock:
            cell.value = value
