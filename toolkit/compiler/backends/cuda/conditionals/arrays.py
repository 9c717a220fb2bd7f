"""TensorArrays in loops and branches that the device decides: one tensor of rows, and a word for each.

The host does not know which elements an iteration reads and writes, so that the device keeps what the host keeps
elsewhere: whether an element was written, or read and let go of. A kernel looks at that, and notes what the array would
have refused (`kernels.cuda.checks`); another one moves the element. An array is put there when it is made, where the
shape of its elements is known. So are the arrays of its gradients, for the op that asks for one may stand in a loop:
what is written to these again is added.

One that grows has memory for as many elements as runs of the host make likely (`list_uses`), and a count of those that
there are. A replay that wants more is done again by the host, and the next recording has more.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cuda.conditionals.array_kernels import (
    ADD,
    READ,
    WRITE,
    entry_kernel,
    first_kernel,
    whole_kernel,
)
from toolkit.compiler.backends.cuda.conditionals.bounded import BoundedArray, Places
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.compiler.backends.cuda.conditionals.lists import launch_row
from toolkit.compiler.backends.cuda.conditionals.nodes import as_number, kept
from toolkit.errors import UnimplementedError
from toolkit.graph.shape import Shape
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand, NestStep
from toolkit.kernels.gpu.lists.tensor_array import held_by
from toolkit.kernels.gpu.primitives.indexing import blocks_for
from toolkit.kernels.resources.tensor_array import TensorArray

MAKE = "TensorArrayV3"
GATHER, SCATTER, GRADIENT = "TensorArrayGatherV3", "TensorArrayScatterV3", "TensorArrayGradV3"
SIZE, CLOSE = "TensorArraySizeV3", "TensorArrayCloseV3"
#: what may be done where the device decides
INSIDE = frozenset({WRITE, READ, GRADIENT, SIZE})


class ArrayRows(NamedTuple):
    """What the device keeps of an array.

    Attributes:
        rows: the elements; those that were not written are zeros.
        words: int32, one for each; the last one says whether the shape of elements is known.
        gradients: the same of the arrays that are made for its gradients, by their sources.
        length: int32 [], how many elements there are of one that grows; None of others, which have all.
    """

    rows: GpuArray
    words: GpuArray
    gradients: dict[str, ArrayRows]
    length: GpuArray | None = None

    @property
    def most(self) -> int:
        """How many elements there is memory for."""
        return self.rows.shape[0]


_kept: weakref.WeakKeyDictionary[TensorArray, ArrayRows] = weakref.WeakKeyDictionary()


def bring(
    device: CudaDevice, running: Any, handle: Any, shape: tuple[int, ...] | None, sources: Iterable[str],
    capacity: Capacity | None,
) -> None:  # fmt: skip
    """Have the device keep an array that was just made.

    Args:
        shape: of what is written to it, if that is known.
        sources: of the gradients that are asked for.
        capacity: how many elements it had so far, if it grows where the device decides.

    Raises:
        UnimplementedError: nobody knows what its elements are, or how many.
    """
    array = held_by(running, handle)
    if array.dynamic and (capacity is None or sources):
        raise UnimplementedError(f"{device.node} makes an array that grows, of which there are gradients")
    if not array.dynamic and not array.size:
        raise UnimplementedError(f"{device.node} makes an array that is empty")
    if array.dtype.kind in "srv":
        raise UnimplementedError(f"{device.node} makes an array of {array.dtype}")
    declared = tuple(array.shape.as_list()) if array.shape.is_fully_defined else None
    size, inner = array.size, shape if declared is None else declared
    if array.dynamic and capacity is not None:
        size = max(size, capacity.rows)
    if inner is None:
        raise UnimplementedError(f"{device.node} makes an array whose elements have no known shape")
    words = device.zeros((size + 1,), np.int32)
    if declared is not None:
        device.context.fill(words.address + 4 * size, 1, 1, device.compute)
    if sources and declared is None and not array.same_shapes:
        raise UnimplementedError(f"{device.node} makes an array of elements that may differ, which gradients are of")

    def rows() -> GpuArray:
        return device.zeros((size, *inner), array.dtype.numpy)

    gradients = {source: ArrayRows(rows(), device.zeros((size + 1,), np.int32), {}) for source in sources}
    count = device.full((), np.dtype(np.int32), array.size) if array.dynamic else None
    _kept[array] = ArrayRows(rows(), words, gradients, count)


def gradient(device: CudaDevice, running: Any, made: Any, handle: Any, source: str) -> None:
    """Have the device keep the array that gradients of another one's elements are written to.

    Args:
        made: the handle that the host's kernel gives.
        handle: of the other one.
    """
    array, held = _found(device, running, handle)
    rows = _kept[held_by(running, made)] = held.gradients[source]
    known = 4 * array.size  # elements are of one shape, which is known for both or for neither
    device.context.copy(rows.words.address + known, held.words.address + known, 4, device.compute)


def write(device: CudaDevice, running: Any, handle: Any, index: Any, value: Any, flow: Any) -> Any:
    """Set an element."""
    array, held = _found(device, running, handle)
    _require_element(device, array, held.rows, value.shape, value)
    told = f"TensorArray {array.name}: Could not write to TensorArray index because it has already been"
    if array.aggregates:
        _add(device, array, held, index, value, f"{told} read.")
        return flow
    place, checks, code = _entry(
        device, WRITE, held, index, array.same_shapes, _outside(array), f"{told} written to.", f"{told} read."
    )
    launch_row(device, held.rows, value, place, checks, code, is_set=True)
    return flow


def size(device: CudaDevice, running: Any, handle: Any, flow: Any) -> GpuArray:
    """How many elements an array that grows has."""
    del flow
    array, held = _found(device, running, handle)
    if held.length is None:
        raise UnimplementedError(f"{device.node} asks for the size of {array.name}, which does not grow")
    return kept(device.copied(held.length))


def _add(device: CudaDevice, array: TensorArray, held: ArrayRows, index: Any, value: GpuArray, told: str) -> None:
    """Set an element, or add to it if it is there."""
    rows = held.rows
    place, checks, code = _entry(device, ADD, held, index, array.same_shapes, _outside(array), "", told)
    before = device.empty(value.shape, value.dtype)
    launch_row(device, rows, before, place, checks, code, is_set=False)
    is_there = place.viewed(np.dtype(np.bool_), (), 4), (0,) * value.ndim
    launch_row(device, rows, _sum(device, is_there, before, value), place, checks, code, is_set=True)


def _sum(
    device: CudaDevice, is_there: tuple[GpuArray, tuple[int, ...]], before: GpuArray, value: GpuArray
) -> GpuArray:  # fmt: skip
    """What elements become: the first gradient as it is, with the sign of its zeros, or a sum.

    Args:
        is_there: whether they are, with strides.
    """
    (there, strides), name = is_there, value.dtype.name
    dense = [NestOperand(name, nests.broadcast_strides(value.shape, value.shape))] * 2
    steps = [NestStep("AddV2", (1, 2), name), NestStep("SelectV2", (0, 3, 2), name)]
    found = nests.fused(steps, [NestOperand("bool", strides), *dense], [4], value.shape, aligned=False)
    made = device.empty(value.shape, value.dtype)
    device.launch(found.kernel, found.blocks, there, before, value, made, *found.numbers)
    return made


def _outside(array: TensorArray) -> str:
    return (
        f"TensorArray {array.name}: Tried to write to an index out of range but array is not resizeable and size is: "
        f"{array.size}"
    )


def read(device: CudaDevice, running: Any, handle: Any, index: Any, flow: Any) -> GpuArray:
    """An element."""
    del flow
    array, held = _found(device, running, handle)
    told = f"TensorArray {array.name}: Could not read"
    place, checks, code = _entry(
        device, READ, held, index, array.clear_after_read, f"TensorArray {array.name}: Tried to read from "
        f"an index out of range; array size is: {array.size}", _unknown(array),
        f"{told} an index twice because it was cleared after a previous read (perhaps try setting clear_after_read = "
        "false?).",
    )  # fmt: skip
    made = device.empty(held.rows.shape[1:], held.rows.dtype)
    launch_row(device, held.rows, made, place, checks, code, is_set=False)
    return made


def _unknown(array: TensorArray) -> str:
    return f"TensorArray {array.name}: Could not read from TensorArray index: the element shape is not fully defined."


def gather(device: CudaDevice, running: Any, handle: Any, indices: Any, flow: Any) -> GpuArray:
    """All elements, or those of some places, as one tensor."""
    array, held = _found(device, running, handle)
    if isinstance(indices, Places):
        return _first(device, array, held, indices)
    places = _places(device, indices)
    if held.length is None and places == list(range(array.size)):
        _all(device, READ, array, held.words, array.clear_after_read)
        return device.copied(held.rows)
    items = [read(device, running, handle, np.int32(place), flow) for place in places]
    if not items:
        raise UnimplementedError(f"{device.node} takes no element")
    return array.space.stacked(array.dtype, items)


def _first(device: CudaDevice, array: TensorArray, held: ArrayRows, places: Places) -> BoundedArray:
    """The first elements of an array, of which the device knows how many they are."""
    checks = _checks(device)
    there = device.full((), np.dtype(np.int32), array.size) if held.length is None else held.length
    told = f"TensorArray {array.name}: Tried to read from an index out of range"
    cleared = f"TensorArray {array.name}: an element cannot be read because it was cleared after a previous read."
    codes = [checks.add(device.node, message) for message in (told, _unknown(array), cleared)]
    blocks, option = blocks_for(held.most), int(array.clear_after_read)
    device.launch(
        first_kernel(), blocks, held.words, there, places.count, checks.word, held.most, option, codes[0]
    )  # fmt: skip
    return BoundedArray.of(device.copied(held.rows), places.count, 0)


def scatter(device: CudaDevice, running: Any, handle: Any, indices: Any, value: GpuArray, flow: Any) -> Any:
    """Rows of a tensor become the elements, each for the first time, or are added to gradients."""
    array, held = _found(device, running, handle)
    rows, words = held.rows, held.words
    _require_element(device, array, rows, value.shape[1:], value)
    if held.length is not None:
        raise UnimplementedError(f"{device.node} writes many elements to an array that grows")
    if _places(device, indices) != list(range(array.size)) or value.shape != rows.shape:
        raise UnimplementedError(f"{device.node} writes to some elements of an array")
    if array.aggregates and rows.nbytes:  # a word's lowest byte says whether the element is there
        there = words.viewed(np.dtype(np.bool_), (array.size * words.dtype.itemsize,))
        value = _sum(device, (there, (words.dtype.itemsize, *(0,) * (value.ndim - 1))), rows, value)
    _all(device, ADD if array.aggregates else WRITE, array, words, array.same_shapes)
    if rows.nbytes:
        device.context.copy(rows.address, value.address, rows.nbytes, device.compute)
    return flow


def refuse(device: CudaDevice, op: str) -> None:
    """Of what is done with such an array otherwise.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError(f"{device.node} ({op}) takes an array of a loop or branch that the device decides")


#: what is done with an array, by ops: called with the device as the node knows it, the step and the inputs
DONE = {WRITE: write, READ: read, GATHER: gather, SCATTER: scatter, SIZE: size}


# -- inside ------------------------------------------------------------------------------------------------------------


def _found(device: CudaDevice, running: Any, handle: Any) -> tuple[TensorArray, ArrayRows]:
    array = held_by(running, handle)
    kept = _kept.get(array)
    if kept is None:
        raise UnimplementedError(f"{device.node} takes an array of the host")
    return array, kept


def _places(device: CudaDevice, indices: Any) -> list[int]:
    if isinstance(indices, GpuArray):
        raise UnimplementedError(f"{device.node} takes places that the device alone knows")
    return np.asarray(indices).reshape(-1).tolist()


def _require_element(
    device: CudaDevice, array: TensorArray, rows: GpuArray, shape: tuple[int, ...], value: Any
) -> None:
    is_there = isinstance(value, GpuArray) and value.dtype == rows.dtype and shape == rows.shape[1:]
    if not is_there or not array.shape.is_compatible_with(Shape(shape)):
        raise UnimplementedError(f"{device.node} writes an element of another kind")


def _checks(device: CudaDevice) -> Checks:
    if device.checks is None:
        raise UnimplementedError(f"{device.node} takes an element of which nobody would hear that it is not there")
    return device.checks


def _entry(
    device: CudaDevice, op: str, held: ArrayRows, index: Any, option: bool, *messages: str
) -> tuple[GpuArray, Checks, int]:  # fmt: skip
    """The place of an element that may be taken or set, -1 where it may not, and behind it whether it is there; the
    word is what it is then."""
    checks = _checks(device)
    codes = [checks.add(device.node, message) for message in messages]
    place = device.empty((2,), np.int32)
    given = as_number(device, index)
    if given.dtype != np.int32:
        raise UnimplementedError(f"{device.node} takes an index of another type")
    if held.length is None:
        grown, room = (), 0
    else:
        grown, room = (held.length,), checks.add_for_host(device.node) if op != READ else 0
    kernel = entry_kernel(op, grows=bool(grown))
    more = (room,) if grown else ()
    device.launch(
        kernel, 1, held.words, given, place, checks.word, *grown, held.most, int(option), codes[0], *more
    )  # fmt: skip
    return place, checks, codes[0]


def _all(device: CudaDevice, op: str, array: TensorArray, words: GpuArray, option: bool) -> None:
    """Take or set all elements, as far as their words are concerned."""
    checks = _checks(device)
    what = "read" if op == READ else "written"
    messages = (
        _unknown(array) if op == READ else f"TensorArray {array.name}: an element has already been written to.",
        f"TensorArray {array.name}: an element cannot be {what} because it was cleared after a previous read.",
    )
    codes = [checks.add(device.node, message) for message in messages]
    blocks = blocks_for(array.size + 1)
    device.launch(whole_kernel(op), blocks, words, checks.word, array.size, int(option), codes[0])
