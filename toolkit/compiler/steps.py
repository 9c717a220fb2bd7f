"""The steps of a program: one for each node, and what executors do with it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from toolkit.compiler.unforeseen import told_of
from toolkit.errors import FailedPreconditionError, GraphmillError, InternalError, OpError
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node
from toolkit.kernels.context import RefVariable
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources import variables
from toolkit.limits.exhaustion import Alive


class Role(enum.Enum):
    """What the executor does with a node."""

    __hash__ = object.__hash__  # members are what they are; Enum's own is a call for every node

    KERNEL = enum.auto()
    CONSTANT = enum.auto()
    ARG = enum.auto()
    RETVAL = enum.auto()
    SWITCH = enum.auto()
    MERGE = enum.auto()
    ENTER = enum.auto()
    EXIT = enum.auto()
    NEXT_ITERATION = enum.auto()
    LOOP_COND = enum.auto()
    SEND = enum.auto()
    TRIGGER = enum.auto()
    SEGMENT = enum.auto()  # several nodes, compiled (`compiler/segments`)


_ROLES: dict[str, Role] = {
    **dict.fromkeys(SWITCH_OPS, Role.SWITCH),
    **dict.fromkeys(MERGE_OPS, Role.MERGE),
    **dict.fromkeys(ENTER_OPS, Role.ENTER),
    **dict.fromkeys(EXIT_OPS, Role.EXIT),
    **dict.fromkeys(NEXT_ITERATION_OPS, Role.NEXT_ITERATION),
    "LoopCond": Role.LOOP_COND,
    **dict.fromkeys(("_Arg", "_DeviceArg"), Role.ARG),
    **dict.fromkeys(("_Retval", "_DeviceRetval"), Role.RETVAL),
    **dict.fromkeys(("Const", "HostConst"), Role.CONSTANT),
    **dict.fromkeys(("_Send", "_HostSend"), Role.SEND),
    "ControlTrigger": Role.TRIGGER,
}


def role_of(op: str) -> Role:
    """What the executor does with nodes of an op."""
    return _ROLES.get(op, Role.KERNEL)


class KernelSource(Protocol):
    """What builds the kernels of nodes: `ProgramKernels`."""

    def compute(self, node: Node) -> Callable[..., Any]:
        """The kernel of a node."""
        ...


@dataclass(slots=True)
class Step:
    """One node of a program, in execution order.

    Attributes:
        inputs: where each data input comes from, as (step index, output index).
        controls: the steps it waits for.
        deref: positions of inputs that carry a reference where the op wants a plain tensor.
        num_outputs: how many outputs the kernel returns.
        index: for ARG and RETVAL, which argument or result.
        constant: the value of a CONSTANT.
        is_target: whoever runs the program asked for it to run, not for what it puts out.
        settle: on a device that keeps variables in its memory: gives a variable's value where an input is wanted.
        kernels: where `compute` comes from when it is first asked for, where it has not been built.
    """

    node: Node
    role: Role
    kind: Kind
    compute: Callable[..., Any]
    inputs: list[tuple[int, int]]
    controls: list[int]
    deref: tuple[int, ...]
    num_outputs: int
    index: int = 0
    constant: Any = None
    is_target: bool = False
    settle: Callable[[int, RefVariable], Any] | None = None
    kernels: KernelSource | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Build the kernel: Python asks here for what has not been set."""
            if name != "compute":
                raise AttributeError(name)
            self.compute = self.kernels.compute(self.node)
            return self.compute


def never(*_: Any) -> Any:
    raise AssertionError("the executor handles this role itself")


def dereference(step: Step, args: list[Any]) -> None:
    """Replace references by the variables' present values where the op wants plain tensors.

    Raises:
        FailedPreconditionError: a variable was not initialised.
    """
    for i in step.deref:
        variable = args[i]
        if variable is None:
            continue  # of a Merge: from the branch that was not taken
        value = variable.value
        if value is None:
            raise FailedPreconditionError(f"Attempting to use uninitialized value {variable.name}")
        args[i] = variables.on_host(value) if step.settle is None else step.settle(i, variable)


def locate(
    error: BaseException,
    step: Step,
    alive: Callable[[], Alive] = lambda: (),
    values: Sequence[Any] | None = None,
) -> BaseException:
    """Say where a failing kernel is.

    An unexpected exception is told as the rule of the op that the node breaks; where it breaks none it becomes an
    InternalError that keeps its cause.

    Args:
        alive: names and values that are there, asked where memory has run out.
        values: of the inputs, where they are still there.
    """
    node = step.node
    if isinstance(error, GraphmillError):
        return error.at(node=node.name)
    told = told_of(error, node, alive() if isinstance(error, MemoryError) else (), values)
    if not isinstance(error, MemoryError):
        told.__cause__ = error
    return told


def as_outputs(step: Step, result: Any) -> Sequence[Any]:
    """The outputs of a kernel as a sequence, checked for their number.

    Raises:
        OpError: the kernel returned another number of outputs than its OpDef says (a bug in the kernel).
    """
    outputs: Sequence[Any]
    if isinstance(result, tuple | list):
        outputs = cast("Sequence[Any]", result)
    elif step.num_outputs == 0:
        outputs = ()
    else:
        outputs = (result,)
    if len(outputs) != step.num_outputs:
        raise _wrong_count(step, len(outputs))
    return outputs


def _wrong_count(step: Step, count: int) -> OpError:
    return InternalError(f"the kernel of {step.node.op} returned {count} output(s), not {step.num_outputs}")
