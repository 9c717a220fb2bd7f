"""Ops that call functions: PartitionedCall, If, Case, While, For and their stateless forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array


@kernel("PartitionedCall", "StatefulPartitionedCall", kind=Kind.STATEFUL)
def partitioned_call(op: KernelNode) -> Compute:
    ref: FuncRef = op.attr("f")
    library, site = op.library, op.name
    types = (op.attr("Tin"), op.attr("Tout"))

    def compute(step: StepContext, *args: Any) -> list[Any]:
        return step.device_functions.prepare(library, ref, site, types)(args, step)

    return compute


@kernel("RemoteCall", kind=Kind.STATEFUL)
def remote_call(op: KernelNode) -> Compute:
    """Runs here whatever the target says: one process holds every device."""
    call = partitioned_call(op)

    def compute(step: StepContext, target: Array, *args: Any) -> list[Any]:
        return call(step, *args)

    return compute


@kernel("If", "StatelessIf", kind=Kind.STATEFUL)
def if_(op: KernelNode) -> Compute:
    then_branch: FuncRef = op.attr("then_branch")
    else_branch: FuncRef = op.attr("else_branch")
    library, name = op.library, op.name
    types = (op.attr("Tin"), op.attr("Tout"))

    def compute(step: StepContext, condition: Array, *args: Any) -> list[Any]:
        branch, which = (then_branch, "then") if truth(condition) else (else_branch, "else")
        return step.device_functions.prepare(library, branch, f"{name}/{which}", types)(args, step)

    return compute


@kernel("Case", "StatelessCase", kind=Kind.STATEFUL)
def case(op: KernelNode) -> Compute:
    """An index outside the branches takes the last one."""
    branches: list[FuncRef] = op.attr("branches")
    library, name = op.library, op.name
    types = (op.attr("Tin"), op.attr("Tout"))

    def compute(step: StepContext, index: Array, *args: Any) -> list[Any]:
        chosen = integer(index, "index")
        chosen = chosen if 0 <= chosen < len(branches) else len(branches) - 1
        return step.device_functions.prepare(library, branches[chosen], f"{name}/{chosen}", types)(args, step)

    return compute


@kernel("While", "StatelessWhile", kind=Kind.STATEFUL)
def while_(op: KernelNode) -> Compute:
    condition: FuncRef = op.attr("cond")
    body: FuncRef = op.attr("body")
    library, states = op.library, op.attr("T")

    def compute(step: StepContext, *args: Any) -> list[Any]:
        test = step.device_functions.prepare(library, condition, f"{op.name}/cond", (states, None), to_host=True)
        iterate = step.device_functions.prepare(library, body, f"{op.name}/body", (states, states))
        state = list(args)
        while _one(test(state, step), op.name):
            if step.cancellation.is_cancelled:
                from toolkit.errors import CancelledError

                raise CancelledError("the step was cancelled")
            state = iterate(state, step)
        return state

    return compute


@kernel("For", kind=Kind.STATEFUL)
def for_(op: KernelNode) -> Compute:
    """Calls body(i, *state) for i in range(start, limit, delta)."""
    body: FuncRef = op.attr("body")
    library, states = op.library, op.attr("T")

    def compute(step: StepContext, start: Array, limit: Array, delta: Array, *args: Any) -> list[Any]:
        if integer(delta, "delta") == 0:
            raise InvalidArgumentError("delta must be nonzero")
        iterate = step.device_functions.prepare(library, body, op.name, ([dtypes.int32, *states], states))
        state = list(args)
        for i in range(integer(start, "start"), integer(limit, "limit"), integer(delta, "delta")):
            state = iterate([np.int32(i), *state], step)
        return state

    return compute


def _one(results: list[Any], name: str) -> bool:
    """What a loop's condition says.

    Raises:
        InvalidArgumentError: it does not return one value.
    """
    if len(results) != 1:
        raise InvalidArgumentError(f"the condition must return one value, not {len(results)}", node=name)
    return truth(results[0])


def truth(value: Any) -> bool:
    """What a condition of any dtype means: scalars by value (empty strings are false), others by size > 0."""
    array = np.asarray(value)
    if array.ndim:
        return array.size > 0
    item = array.item()
    return len(item) > 0 if isinstance(item, str | bytes) else bool(item)
