"""Tensors of a recording whose length the device alone knows: as long as there is memory, with the length beside them.

What a loop that tensors decide has written to an array or a list that grows is taken as one tensor behind it, as long
as the loop ran. A recording has memory for more. What is done with each row by itself may be done with all rows, those
that are none too, whose numbers nobody takes; whoever copies the tensor to the host cuts them off. What asks for the
length, sums over it, or puts the tensor beside another one of that length cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operations.calls import Call
from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray


class BoundedArray(GpuArray):
    """A tensor with memory for more than there is.

    Attributes:
        count: int32 [], how long it is.
        axis: along which.
        on_host: it belongs into host memory.
    """

    __slots__ = ("axis", "count", "on_host")
    count: GpuArray
    axis: int
    on_host: bool

    @staticmethod
    def of(array: GpuArray, count: GpuArray, axis: int, *, on_host: bool = False) -> BoundedArray:
        """A tensor, of which only a part is one."""
        made = BoundedArray(array.device, array.block, array.dtype, array.shape, array.nbytes)
        made.address, made.count, made.axis, made.on_host = array.address, count, axis, on_host
        return made


class Places:
    """The numbers from 0 on, as many as the device knows.

    Attributes:
        count: int32 [], how many they are.
    """

    __slots__ = ("count",)

    def __init__(self, count: GpuArray):
        self.count = count


def cut(array: Any, axis: int, length: int) -> Any:
    """The part that is the tensor, on the host."""
    return np.ascontiguousarray(array[(slice(None),) * axis + (slice(length),)])


#: where the axis is behind an operation, from where it was, the number of axes and the constant inputs
_Moves = Callable[[Call, int, int, Sequence[Any]], int | None]


def _stays(call: Call, axis: int, rank: int, constants: Sequence[Any]) -> int | None:
    del call, rank, constants
    return axis


def _transposed(call: Call, axis: int, rank: int, constants: Sequence[Any]) -> int | None:
    del call, rank
    order = np.asarray(constants[1]).reshape(-1).tolist()
    return order.index(axis)


def _of_rows(call: Call, axis: int, rank: int, constants: Sequence[Any]) -> int | None:
    """What computes along the last axis."""
    del call, constants
    return axis if axis != rank - 1 else None


def _reduced(call: Call, axis: int, rank: int, constants: Sequence[Any]) -> int | None:
    gone = {int(each) % rank for each in np.asarray(constants[1]).reshape(-1)}
    if axis in gone:
        return None
    keeps = call.op not in ("ArgMax", "ArgMin") and bool(call.step.node.attr("keep_dims", False))
    return axis if keeps else axis - sum(each < axis for each in gone)


#: ops other than elementwise ones that treat each row by itself, with the number of inputs that have to be constant
_ROWS: dict[str, tuple[_Moves, int]] = {
    "Identity": (_stays, 0), "Snapshot": (_stays, 0), "StopGradient": (_stays, 0), "Cast": (_stays, 0),
    "Transpose": (_transposed, 1), "Softmax": (_of_rows, 0), "LogSoftmax": (_of_rows, 0),
    **dict.fromkeys(("ArgMax", "ArgMin", "Max", "Min", "Sum", "Mean", "Prod", "All", "Any"), (_reduced, 1)),
}  # fmt: skip


def by_rows(call: Call) -> bool:
    """Whether an op may be given such a tensor, as far as its constants tell."""
    if call.predicates or call.step.deref or len(call.outputs) != 1:
        return False
    if call.op in _ROWS:
        wanted = _ROWS[call.op][1]
        return all(value.is_constant for value in call.inputs[1 : 1 + wanted])
    return call.op in ELEMENTWISE


def applied(device: CudaDevice, call: Call, given: Sequence[Any]) -> BoundedArray:
    """What an op makes of such tensors and of others.

    Raises:
        UnimplementedError: another tensor is as long, or the op looks along the axis.
    """
    bounded = [each for each in given if isinstance(each, BoundedArray)]
    first = bounded[0]
    if any(each.count is not first.count for each in bounded):
        raise UnimplementedError(f"{device.node} takes tensors of two lengths that the device alone knows")
    if call.op in _ROWS:
        axis = _ROWS[call.op][0](call, first.axis, first.ndim, given)
    else:
        behind = first.ndim - first.axis
        axis = first.axis
        for each in given:
            shape = np.shape(each)
            if isinstance(each, BoundedArray):
                fits = each.axis - each.ndim == -behind
            else:
                fits = len(shape) < behind or shape[-behind] == 1
            axis = max(axis, len(shape) - behind)
            if not fits:
                raise UnimplementedError(
                    f"{device.node} takes a tensor beside one whose length the device alone knows"
                )  # fmt: skip
    if axis is None:
        raise UnimplementedError(f"{device.node} ({call.op}) looks along a length that the device alone knows")
    made = call.step.compute(*given)
    array = cast("GpuArray", made[0] if isinstance(made, list | tuple) else made)
    return BoundedArray.of(array, first.count, axis)
