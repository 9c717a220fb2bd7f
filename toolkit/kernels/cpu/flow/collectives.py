"""Collective ops: what the devices of a group make of a tensor of each, in one process.

Sums are added in the order of devices, so that results are the same bits each time and on each device. TensorFlow's
groups that reach over several processes have no meaning here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels.collectives import Exchange, Member, meetings_of, member_of
from toolkit.kernels.context import Done, StepContext
from toolkit.kernels.cpu.common import integer, require, to_ints
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

#: what TensorFlow's names stand for
_OPERATIONS = {"add": "Add", "sum": "Add", "mul": "Mul", "prod": "Mul", "max": "Maximum", "min": "Minimum"}
_SHAPED = "the tensors of a group must have one shape"


def _reduced(how: str, divides: bool, members: Sequence[Member]) -> list[Any]:
    """Every member gets the same, computed where it is."""
    _check_shapes(members, 0)
    made: list[Any] = []
    for member in members:
        total = member.space.brought(members[0].value)
        for other in members[1:]:
            total = member.space.computed(how, total, member.space.brought(other.value))
        made.append(member.space.divided(total, len(members)) if divides else total)
    return made


def _check_shapes(members: Sequence[Member], first: int) -> None:
    """Refuse tensors whose sizes differ from an axis on."""
    shape = members[0].value.shape
    for member in members[1:]:
        if len(member.value.shape) != len(shape) or member.value.shape[first:] != shape[first:]:
            raise InvalidArgumentError(f"{_SHAPED}: {list(shape)} against {list(member.value.shape)}", node=member.node)


def _gathered(members: Sequence[Member]) -> list[Any]:
    """Every member gets all tensors, one behind the other along the first axis."""
    _check_shapes(members, 0)
    return [member.space.joined([member.space.brought(each.value) for each in members]) for member in members]


def _sent(members: Sequence[Member]) -> list[Any]:
    """Every member gets the tensor of the one that has one."""
    sources = [member for member in members if member.value is not None]
    if len(sources) != 1:
        raise InternalError(
            f"a broadcast takes one sender, and {len(sources)} of {len(members)} members are", node=members[0].node
        )
    return [member.space.brought(sources[0].value) for member in members]


def _exchanged(members: Sequence[Member]) -> list[Any]:
    """Member i gets the i-th part of each one's tensor."""
    rows = members[0].value.shape[0]
    if rows != len(members):
        raise InvalidArgumentError(f"{rows} rows are not one for each of {len(members)} members", node=members[0].node)
    parts = _parts(members)
    return [
        member.space.joined([member.space.brought(each[at]) for each in parts]) for at, member in enumerate(members)
    ]


def _parts(members: Sequence[Member]) -> list[list[Any]]:
    """Each member's tensor in as many parts as there are members."""
    _check_shapes(members, 0)
    rows, count = members[0].value.shape[0], len(members)
    if rows % count:
        raise InvalidArgumentError(f"{rows} rows do not divide among {count} members", node=members[0].node)
    return [member.space.parts(member.value, [rows // count] * count) for member in members]


def _scattered(how: str, divides: bool, members: Sequence[Member]) -> list[Any]:
    """Member i gets what is computed of all i-th parts."""
    parts, made = _parts(members), list[Any]()
    for at, member in enumerate(members):
        total = member.space.brought(parts[0][at])
        for other in parts[1:]:
            total = member.space.computed(how, total, member.space.brought(other[at]))
        made.append(member.space.divided(total, len(members)) if divides else total)
    return made


def _arithmetic(op: KernelNode) -> tuple[str, bool]:
    """What tensors are put together by, and whether that is divided by their number."""
    return _OPERATIONS[op.text("merge_op").lower()], op.text("final_op") == "Div"


def _exchange(op: KernelNode) -> Exchange:
    match op.op.removesuffix("V2"):
        case "CollectiveReduce":
            how, divides = _arithmetic(op)
            return functools.partial(_reduced, how, divides)
        case "CollectiveReduceScatter":
            how, divides = _arithmetic(op)
            return functools.partial(_scattered, how, divides)
        case "CollectiveGather":
            return _gathered
        case "CollectiveAllToAll":
            return _exchanged
        case _:
            return _sent


def _joins(op: KernelNode) -> Any:
    """What a node does with a tensor: (step, done, value, size, keys, shape of what is sent or received)."""
    exchange, dtype = _exchange(op), op.attr("T")
    has_rows = not op.op.startswith(("CollectiveReduceV2", "CollectiveBcast")) and op.op != "CollectiveReduce"
    # what a member says of a reduction is not compared: TensorFlow takes one member's word for it

    def join(
        step: StepContext, done: Done, value: Any, size: int, keys: Sequence[int], shape: tuple[int, ...] | None
    ) -> None:
        require(size > 0, f"group_size must be positive, got {size}")
        require(not has_rows or value.ndim > 0, f"{op.op} takes a tensor with an axis, got a scalar")
        kind = op.op.removesuffix("V2").removesuffix("Send").removesuffix("Recv")
        member = member_of(op, value, (kind, str(dtype), shape), done)
        meetings_of(step).join(step, tuple(keys), size, member, exchange)

    return join


@kernel("CollectiveReduce", "CollectiveGather", kind=Kind.ASYNC)
def collective(op: KernelNode) -> Compute:
    join, size, keys = _joins(op), int(op.attr("group_size")), [op.attr("group_key"), op.attr("instance_key")]

    def compute(step: StepContext, done: Done, value: Any) -> None:
        join(step, done, value, size, keys, None)

    return compute


@kernel(
    "CollectiveReduceV2", "CollectiveGatherV2", "CollectiveAllToAllV2", "CollectiveReduceScatterV2", kind=Kind.ASYNC
)
def collective_v2(op: KernelNode) -> Compute:
    """Size and keys are tensors; tokens that order nodes are dependencies, and nothing more."""
    join = _joins(op)

    def compute(step: StepContext, done: Done, value: Any, size: Array, group: Array, instance: Array, *_: Any) -> None:
        keys = [integer(group, "group_key"), integer(instance, "instance_key")]
        join(step, done, value, integer(size, "group_size"), keys, None)

    return compute


@kernel("CollectiveBcastSend", "CollectiveBcastRecv", kind=Kind.ASYNC)
def broadcast(op: KernelNode) -> Compute:
    join, size, keys = _joins(op), int(op.attr("group_size")), [op.attr("group_key"), op.attr("instance_key")]
    shape = _known(op)

    def compute(step: StepContext, done: Done, *given: Any) -> None:
        value = given[0] if given else None
        if value is not None and tuple(value.shape) != shape:
            raise InternalError(f"'shape' is {list(shape)}, the tensor to be sent {list(value.shape)}", node=op.name)
        join(step, done, value, size, keys, shape)

    return compute


def _known(op: KernelNode) -> tuple[int, ...]:
    shape: Any = op.attr("shape")
    if shape.dims is None or None in shape.dims:
        raise InvalidArgumentError(f"the shape of a broadcast must be known, got {shape}", node=op.name)
    return tuple(shape.dims)


@kernel("CollectiveBcastSendV2", kind=Kind.ASYNC)
def broadcast_send_v2(op: KernelNode) -> Compute:
    join = _joins(op)

    def compute(step: StepContext, done: Done, value: Any, size: Array, group: Array, instance: Array) -> None:
        keys = [integer(group, "group_key"), integer(instance, "instance_key")]
        join(step, done, value, integer(size, "group_size"), keys, tuple(value.shape))

    return compute


@kernel("CollectiveBcastRecvV2", kind=Kind.ASYNC)
def broadcast_recv_v2(op: KernelNode) -> Compute:
    join = _joins(op)

    def compute(step: StepContext, done: Done, size: Array, group: Array, instance: Array, shape: Array) -> None:
        keys = [integer(group, "group_key"), integer(instance, "instance_key")]
        join(step, done, None, integer(size, "group_size"), keys, tuple(to_ints(shape)))

    return compute


@kernel("NcclAllReduce", kind=Kind.ASYNC)
def nccl_all_reduce(op: KernelNode) -> Compute:
    """Of the nodes that share a name."""
    exchange, size = functools.partial(_reduced, _OPERATIONS[op.text("reduction")], False), int(op.attr("num_devices"))
    name, dtype = op.text("shared_name"), str(op.attr("T"))
    require(size > 0, f"num_devices must be positive, got {size}")

    def compute(step: StepContext, done: Done, value: Any) -> None:
        member = member_of(op, value, ("NcclAllReduce", dtype, op.text("reduction")), done)
        meetings_of(step).join(step, ("nccl", name), size, member, exchange)

    return compute


@kernel("NcclReduce")
def nccl_reduce(op: KernelNode) -> Compute:
    """Of its inputs, which come from wherever they are."""
    how, names = (
        _OPERATIONS[op.text("reduction")],
        [f"input {i} of {op.name}" for i in range(int(op.attr("num_devices")))],
    )

    def compute(*values: Any) -> Any:
        members = [member_of(op, value, None, _nobody) for value in values]
        for member, name in zip(members, names, strict=True):
            member.node = name
        return _reduced(how, False, members)[0]

    return compute


def _nobody(_: Any) -> None:
    """Is told nothing."""


@kernel("NcclBroadcast")
def nccl_broadcast(op: KernelNode) -> Compute:
    """A tensor for whoever takes it, on whatever device."""
    shape: Any = op.attr("shape")

    def compute(value: Any) -> Any:
        fits = shape.dims is None or (
            len(shape.dims) == value.ndim
            and all(known in (None, size) for known, size in zip(shape.dims, value.shape, strict=True))
        )
        require(fits, f"'shape' is {shape}, the tensor {list(value.shape)}")
        return value

    return compute
