"""The ops that hold a graph together: constants, placeholders, arguments, results, transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.formats.arrays.tensor import to_array
from toolkit.kernels.context import DEAD, Done, StepContext
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array


@kernel("Const", "HostConst")
def const(op: KernelNode) -> Compute:
    """The `value` attribute, decoded once."""
    packed = op.node.packed
    value, dtype = to_array(op.attr("value")) if packed is None else to_array(*packed), op.attr("dtype")
    if value.dtype != dtype.numpy:
        raise InvalidArgumentError(f"its value is of type {value.dtype}, not of its attribute's, {dtype}", node=op.name)
    return lambda: value


@kernel("Placeholder", "PlaceholderV2")
def placeholder(op: KernelNode) -> Compute:
    """Must be fed; running it is the caller's mistake."""
    dtype, shape = op.output_types[0], op.attr("shape", None)

    def compute() -> Array:
        wanted = f" and shape {shape}" if shape is not None and shape.dims is not None else ""
        raise InvalidArgumentError(
            f"You must feed a value for placeholder tensor '{op.name}' with dtype {dtype}{wanted}", node=op.name
        )

    return compute


@kernel("PlaceholderWithDefault")
def placeholder_with_default(op: KernelNode) -> Compute:
    def compute(value: Array) -> Array:
        return value

    return compute


@kernel("NoOp", "ControlTrigger")
def no_op(op: KernelNode) -> Compute:
    return lambda: None


@kernel("_Arg", "_DeviceArg")
def arg(op: KernelNode) -> Compute:
    """Filled by the executor from the step's arguments; never called."""
    raise AssertionError("the executor supplies arguments")


@kernel("_Retval", "_DeviceRetval")
def retval(op: KernelNode) -> Compute:
    """Taken by the executor as a result; never called."""
    raise AssertionError("the executor takes results")


def transfer_key(op: KernelNode) -> str:
    """The rendezvous key up to the frame and iteration."""
    incarnation = op.attr("send_device_incarnation") & (2**64 - 1)
    return f"{op.text('send_device')};{incarnation:016x};{op.text('recv_device')};{op.text('tensor_name')}"


def transfer_keys(op: KernelNode) -> Callable[[tuple[int, int]], str]:
    """The rendezvous key for a frame and iteration; the one outside of loops is made once."""
    key = transfer_key(op)
    outside = f"{key};0:0"
    return lambda at: outside if at == _OUTSIDE else f"{key};{at[0]}:{at[1]}"


_OUTSIDE = (0, 0)


@kernel("_Send", "_HostSend", kind=Kind.STATEFUL)
def send(op: KernelNode) -> Compute:
    key_of = transfer_keys(op)

    def compute(step: StepContext, value: Any, is_dead: bool = False) -> None:
        step.rendezvous.send(key_of(step.frame_iter), value, is_dead)

    return compute


@kernel("_Recv", "_HostRecv", kind=Kind.ASYNC)
def recv(op: KernelNode) -> Compute:
    """`done` gets the value, an error, or DEAD when the sender was on a branch not taken."""
    key_of = transfer_keys(op)

    def compute(step: StepContext, done: Done) -> None:
        def arrived(value: Any, is_dead: bool, error: BaseException | None) -> None:
            if is_dead:
                done(DEAD)
            else:
                done(value if error is None else error)

        step.rendezvous.recv_async(key_of(step.frame_iter), arrived)

    return compute
