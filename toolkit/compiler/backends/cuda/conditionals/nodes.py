"""Loops and branches of a step that is recorded, as conditional nodes of its CUDA graph.

A number of host memory that only the device knows (`device_numbers`) is a `DeviceNumber` meanwhile: its memory is the
device's, and whoever would copy it to the host takes it as it is.

Of a loop, what comes before its test is recorded twice: in front of the node, for the first iteration, and at the end
of the node's body, for the next one. Its states have memory of their own, which the body reads and writes.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.conditionals import growing, lists, nested_lists
from toolkit.compiler.backends.cuda.conditionals.bounded import BoundedArray
from toolkit.compiler.backends.cuda.conditionals.growing import GrowingList
from toolkit.compiler.backends.cuda.conditionals.list_uses import Capacity
from toolkit.compiler.backends.cuda.conditionals.lists import LoopList
from toolkit.compiler.backends.cuda.conditionals.nested_lists import NestedList
from toolkit.errors import UnimplementedError
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand, NestStep
from toolkit.kernels.gpu.reductions.axes import reduced
from toolkit.kernels.resources.tensor_list import TensorList
from toolkit.kernels.types import Array

#: bytes of numbers that the host knows and the device computes with: sizes and lengths, not data, as where steps are
#: recorded
_LARGEST = 256
#: one iteration of a loop's body: gives its condition with what is needed behind it, then returns the next states
Iteration = Callable[[list[Any], Any], Generator[tuple[Any, Sequence[Any]], None, list[Any]]]
#: predicates, and what each must be
Terms = Sequence[tuple[Any, bool]]


class DeviceNumber(GpuArray):
    """A tensor that belongs into host memory, and that only the device knows."""

    __slots__ = ()


def for_host(array: GpuArray) -> DeviceNumber | BoundedArray:
    """What would be copied to the host, whatever its length."""
    if isinstance(array, BoundedArray):
        return BoundedArray.of(array, array.count, array.axis, on_host=True)
    return kept(array)


def kept(array: GpuArray) -> DeviceNumber:
    """A tensor that is not copied to the host."""
    made = DeviceNumber(array.device, array.block, array.dtype, array.shape, array.nbytes)
    made.address = array.address
    return made


def plain(device: CudaDevice, value: Any) -> GpuArray:
    """A tensor that need not be copied to the device: only the first iterations of a loop have it on the host."""
    found = as_number(device, value)
    return found.reshaped(found.shape) if isinstance(found, DeviceNumber) else found


def as_number(device: CudaDevice, value: Any) -> GpuArray:
    """A number on the device, whether or not the host knows it."""
    return value if isinstance(value, GpuArray) else _filled(device, device.node, value)


def may(terms: Terms) -> bool:
    """Whether a branch may be taken, by the predicates that the host knows."""
    return all(isinstance(value, GpuArray) or bool(value) is wanted for value, wanted in terms)


@contextmanager
def branch(device: CudaDevice, terms: Terms) -> Generator[None]:
    """What is recorded within is done where all predicates are as they must be."""
    known_there = [(value, wanted) for value, wanted in terms if isinstance(value, GpuArray)]
    if not known_there:
        yield
        return
    condition = _condition(device, known_there)
    with device.body(condition, repeats=False):
        yield


@contextmanager
def unless_refused(device: CudaDevice) -> Generator[None]:
    """What is recorded within changes variables: it is done where nothing was found to be wrong before."""
    checks = device.checks
    if checks is None:
        yield
        return
    checks.updates += 1
    if not checks:
        yield
        return
    with device.body(_condition(device, []), repeats=False):
        yield


def choose(device: CudaDevice, predicate: Any, taken: Any, other: Any, capacity: Capacity | None = None) -> Any:
    """The value of the branch that is taken, both of which have memory.

    Args:
        capacity: how many elements it had so far, where it is a list that the program pushes to.

    Raises:
        UnimplementedError: they are no tensors of one shape.
    """
    if taken is other:
        return taken
    if isinstance(taken, TensorList) or isinstance(other, TensorList):
        if not (isinstance(taken, TensorList) and isinstance(other, TensorList)):
            raise UnimplementedError(f"the branches of {device.node} give a list and {type(other).__name__}")
        if any(nested_lists.nests(each, capacity) for each in (taken, other)):
            raise UnimplementedError(f"the branches of {device.node} give lists of lists")
        if all(growing.grows(each, capacity) for each in (taken, other)):
            return _choose_growing(device, predicate, taken, other, capacity)
        one, two = (lists.as_rows(device, each) for each in (taken, other))
        if (one.dense.shape, one.dtype) != (two.dense.shape, two.dtype):
            raise UnimplementedError(f"the branches of {device.node} give {taken} and {other}")
        chosen = _computed(device, NestStep("SelectV2", (0, 1, 2), ""), [predicate, one.dense, two.dense])
        return LoopList.of(one, chosen)
    specs = [(np.shape(each), getattr(each, "dtype", None)) for each in (taken, other)]
    if specs[0] != specs[1]:
        told = " and ".join(f"{dtype}{list(shape)}" for shape, dtype in specs)
        raise UnimplementedError(f"the branches of {device.node} give {told}")
    on_host = not all(isinstance(each, GpuArray) and not isinstance(each, DeviceNumber) for each in (taken, other))
    made = _computed(device, NestStep("SelectV2", (0, 1, 2), ""), [predicate, taken, other])
    return kept(made) if on_host else made


def _choose_growing(
    device: CudaDevice, predicate: Any, taken: TensorList, other: TensorList, capacity: Capacity | None
) -> GrowingList:
    one, two = (growing.as_growing(device, each, capacity) for each in (taken, other))
    if (one.dense.shape, one.dtype) != (two.dense.shape, two.dtype):
        raise UnimplementedError(f"the branches of {device.node} give lists of other elements")
    step = NestStep("SelectV2", (0, 1, 2), "")
    parts = [(one.dense, two.dense), (one.count, two.count)]
    return GrowingList(one, *(_computed(device, step, [predicate, *both]) for both in parts))


def require(device: CudaDevice, holds: Any) -> None:
    """See to it that something holds: else the step is done again by the host, which tells what is wrong.

    Raises:
        UnimplementedError: the host knows that it does not, or nobody would hear of it.
    """
    if not isinstance(holds, GpuArray):
        if not np.all(holds):
            raise UnimplementedError(f"{device.node} fails while the step is recorded")
        return
    if device.checks is None:
        raise UnimplementedError(f"{device.node} asserts what nobody would hear of")
    code = device.checks.add_for_host(device.node)
    device.launch(assertion_kernel(), 1, holds, device.checks.word, code)


@functools.cache
def assertion_kernel() -> SimtKernel:
    """Takes a predicate, one byte, the word [1] and what is put there where it does not hold."""
    k = KernelBuilder("asserted", block=WARP)
    place, word, code = k.buffer("holds", "i8"), k.buffer("word", "i32", written=True), k.scalar("code", "i32")
    zero = k.number(0, "i32")
    with k.when(k.compare("eq", k.thread, zero)), k.when(k.inverse(k.load_bool(place, zero))):
        k.compare_exchange(word, zero, zero, code)
    return k.finish()


def computed_by(
    device: CudaDevice, op: str, dtype: Any, attributes: tuple[tuple[str, Any], ...]
) -> Callable[..., DeviceNumber]:
    """What computes an elementwise op of numbers, some of which the device alone knows.

    Args:
        dtype: of the result.
    """

    def compute(*given: Any) -> DeviceNumber:
        step = NestStep(op, tuple(range(len(given))), np.dtype(dtype).name, attributes)
        return kept(_computed(device, step, given))

    return compute


def reshaped(device: CudaDevice, value: Any, shape: tuple[int, ...]) -> DeviceNumber:
    """The same numbers in another shape."""
    return kept(as_number(device, value).reshaped(shape))


def push(
    device: CudaDevice, compute: Callable[..., Any], value: Any, item: Any, capacity: Capacity | None, *, inside: bool,
    in_place: bool,
) -> TensorList:  # fmt: skip
    """The list with one element more, which may be a list; see `growing.push`."""
    if isinstance(value, NestedList) or (inside and nested_lists.nests(value, capacity)):
        return nested_lists.push(device, value, item, capacity, in_place=in_place)
    return growing.push(device, compute, value, item, capacity, inside=inside, in_place=in_place)


def pop(
    device: CudaDevice, compute: Callable[..., Any], value: Any, shape: Any, *, inside: bool
) -> tuple[TensorList, Any]:  # fmt: skip
    """The list without its last element, and that; see `growing.pop`."""
    if isinstance(value, NestedList):
        return nested_lists.pop(device, value, growing.EMPTY)
    return growing.pop(device, compute, value, shape, inside=inside)


def get_item(device: CudaDevice, index: GpuArray, value: TensorList) -> GpuArray:
    """The element of a list at an index that the device knows."""
    if isinstance(value, NestedList):
        raise UnimplementedError(f"{device.node} takes a list out of a list at some place")
    if isinstance(value, GrowingList):
        return growing.get_item(device, index, value)
    return lists.get_item(device, index, value)


def set_item(
    device: CudaDevice, index: GpuArray, value: TensorList, item: Any, capacity: Capacity | None, *, in_place: bool,
    enlarges: bool,
) -> TensorList:  # fmt: skip
    """The list with another element at an index that the device knows.

    Args:
        capacity: how many elements it had so far, if it becomes longer.
        in_place: nobody looks at the list as it was.
        enlarges: it becomes longer for an index behind its end.
    """
    if isinstance(value, NestedList) or isinstance(item, TensorList):
        raise UnimplementedError(f"{device.node} puts a list into a list at some place")
    if not enlarges and not isinstance(value, GrowingList):
        return lists.set_item(device, index, value, item, in_place=in_place)
    held = growing.as_growing(device, value, capacity)
    return growing.set_item(device, index, held, item, in_place=in_place and held is value, enlarges=enlarges)


def filled(device: CudaDevice, sizes: Any, value: Any) -> Any:
    """A number that the device alone knows, as often as the host says."""
    given, shape = as_number(device, value), tuple(np.asarray(sizes).reshape(-1).tolist())
    step, made = NestStep("Cast", (0,), given.dtype.name), device.empty(shape, given.dtype)
    if made.nbytes:
        operand = NestOperand(given.dtype.name, (0,) * len(shape))
        found = nests.fused([step], [operand], [1], shape, aligned=False)
        device.launch(found.kernel, found.blocks, given, made, *found.numbers)
    return kept(made)


def reduced_by(device: CudaDevice, op: str, axes: Any, keep: bool) -> Callable[[Any], GpuArray]:
    """What reduces numbers of host memory that the device alone knows.

    Args:
        axes: over which.
        keep: they stay, with one element each.
    """

    return lambda given: kept(reduced(device, op, as_number(device, given), axes, keep=keep))


def repeated(
    device: CudaDevice, name: str, body: Iteration, varies: Sequence[bool], capacities: Sequence[Capacity | None]
) -> Callable[..., list[Any]]:
    """A loop as one conditional node: called with states, invariants and the step, it gives the last states.

    Args:
        name: of the loop, for messages.
        varies: whether an iteration gives a state another value.
        capacities: of the states that are lists which iterations push to, how many elements they had so far.
    """

    def run(states: list[Any], invariants: list[Any], running: Any) -> list[Any]:
        own = [
            _own(device, name, state, capacity) if vary else state
            for state, vary, capacity in zip(states, varies, capacities, strict=True)
        ]
        checks = device.checks
        before = (0, 0) if checks is None else (checks.left_to_host, checks.updates)
        first = body(own + invariants, running)
        decided, needed = next(first)
        condition = _condition(device, [(decided, True)])
        with device.body(condition, repeats=True):
            after = _rest(first)
            _write(device, name, [(to, value) for to, value, vary in zip(own, after, varies, strict=True) if vary])
            del after
            following = body(own + invariants, running)
            decided, fresh = next(following)
            _write(device, name, list(zip(needed, fresh, strict=True)))
            _set(device, condition, [(decided, True)])
            following.close()
        if checks is not None:
            checks.require_saved(name, after=checks.left_to_host > before[0] and checks.updates > before[1])
        return own

    return run


def _rest(iteration: Generator[Any, None, list[Any]]) -> list[Any]:
    """What an iteration returns."""
    try:
        next(iteration)
    except StopIteration as end:
        return end.value
    raise AssertionError("a body has one test")


def _own(device: CudaDevice, name: str, value: Any, capacity: Capacity | None) -> GpuArray | TensorList:
    """A copy of a state in memory of its own."""
    if isinstance(value, TensorList) and nested_lists.nests(value, capacity):
        return nested_lists.copied(device, value, capacity)
    if growing.grows(value, capacity):
        return growing.copied(device, value, capacity)
    if isinstance(value, TensorList):
        rows = lists.as_rows(device, value)
        return LoopList.of(rows, device.copied(rows.dense))
    if isinstance(value, DeviceNumber):
        return kept(device.copied(value))
    if isinstance(value, GpuArray):
        return device.copied(value)
    return _filled(device, name, value)


def _filled(device: CudaDevice, name: str, value: Any) -> DeviceNumber:
    """A number that the host knows, on the device."""
    is_array = isinstance(value, np.ndarray | np.generic | bool) and not np.asarray(value).dtype.hasobject
    if is_array and 0 < np.asarray(value).nbytes <= _LARGEST and np.size(value) != 1 and device.checks is not None:
        return kept(_brought(device, device.checks, np.asarray(value)))
    if not is_array or np.size(value) != 1:
        what = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
        raise UnimplementedError(f"{name} changes what is no number on the host: {what}")
    array = np.asarray(value)
    return kept(device.full(array.shape, array.dtype, array.reshape(-1)[0]))


def _brought(device: CudaDevice, checks: Checks, array: Array) -> GpuArray:
    """Numbers of the host as a tensor: each replay copies them from pinned memory, which stays for it."""
    pinned, made = device.context.pinned(array.nbytes), device.empty(array.shape, array.dtype)
    pinned[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    checks.held.append(pinned)
    device.context.copy_in(made.address, pinned, device.compute)
    return made


def _write(device: CudaDevice, name: str, pairs: Sequence[tuple[Any, Any]]) -> None:
    """Give tensors, and lists of tensors, the numbers of others, as if all at once."""
    pairs = [pair for to, value in pairs for pair in _parts(device, to, value)]
    blocks = {id(to.block) for to, _ in pairs if isinstance(to, GpuArray)}
    left: list[tuple[GpuArray, GpuArray]] = []
    for to, value in pairs:
        if not isinstance(to, GpuArray):
            if value is not to and not np.array_equal(to, value):
                raise UnimplementedError(f"{name} changes a value of the host in each iteration")
            continue
        if not isinstance(value, GpuArray):
            array = np.asarray(value)
            if array.shape != to.shape or array.dtype != to.dtype or array.size != 1:
                raise UnimplementedError(f"{name} changes what is no number on the host")
            value = _filled(device, name, array)
        if (value.shape, value.dtype) != (to.shape, to.dtype):
            raise UnimplementedError(
                f"{name} makes {to.dtype}{list(to.shape)} a {value.dtype}{list(value.shape)}: memory that grows"
            )
        if value.address == to.address or not to.nbytes:
            continue
        # what another pair writes is copied before
        left.append((to, device.copied(value) if id(value.block) in blocks else value))
    for to, value in left:
        device.context.copy(to.address, value.address, to.nbytes, device.compute)


def _parts(device: CudaDevice, to: Any, value: Any) -> list[tuple[Any, Any]]:
    """The tensors of a list, with those that they are given."""
    if isinstance(to, NestedList):
        given = nested_lists.as_nested(device, value, None)
        to.like = to.like or given.like
        return [(to.dense, given.dense), (to.count, given.count), (to.counts, given.counts)]
    if isinstance(to, GrowingList):
        held = growing.as_growing(device, value)
        return [(to.dense, held.dense), (to.count, held.count)]
    if isinstance(to, LoopList):
        return [(to.dense, lists.as_rows(device, value).dense)]
    return [(to, value)]


def _computed(device: CudaDevice, step: NestStep, given: Sequence[Any]) -> GpuArray:
    """An elementwise op of tensors and numbers."""
    arrays = [each if isinstance(each, GpuArray) else _filled(device, step.op, each) for each in given]
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    dtype = np.dtype(step.dtype) if step.dtype else arrays[-1].dtype
    operands = [NestOperand(each.dtype.name, nests.broadcast_strides(each.shape, shape)) for each in arrays]
    found = nests.fused([step if step.dtype else NestStep(step.op, step.inputs, dtype.name)], operands, [len(arrays)],
                        shape, aligned=False)  # fmt: skip
    made = device.empty(shape, dtype)
    device.launch(found.kernel, found.blocks, *arrays, made, *found.numbers)
    return made


# -- conditions --------------------------------------------------------------------------------------------------------


def _condition(device: CudaDevice, terms: Terms) -> int:
    """A new condition, which is set to whether predicates are as they must be."""
    made = device.context.condition(device.compute)
    _set(device, made, terms)
    return made


def _set(device: CudaDevice, condition: int, terms: Terms) -> None:
    checks = device.checks or None  # None, too, where nothing can be wrong so far
    kernel = condition_kernel(tuple(wanted for _, wanted in terms), is_checked=checks is not None)
    word = () if checks is None else (checks.word,)
    device.launch(kernel, 1, condition, *(value for value, _ in terms), *word)


@functools.cache
def condition_kernel(wanted: tuple[bool, ...], *, is_checked: bool = False) -> SimtKernel:
    """Sets a condition to whether predicates, one byte each, are as they must be.

    Args:
        is_checked: and nothing was found to be wrong (`kernels.cuda.checks`), for then a loop may never end.
    """
    k = KernelBuilder("condition_" + "".join("ny"[each] for each in wanted) + "_checked" * is_checked, block=WARP)
    handle = k.scalar("handle", "i64")
    places = [k.buffer(f"p{index}", "i8") for index in range(len(wanted))]
    words = [k.buffer("word", "i32")] if is_checked else []
    zero = k.number(0, "i32")
    with k.when(k.compare("eq", k.thread, zero)):
        holds = k.number(1, "i1")
        for place, each in zip(places, wanted, strict=True):
            found = k.load_bool(place, zero)
            holds = k.both(holds, found if each else k.inverse(found))
        for word in words:
            holds = k.both(holds, k.compare("eq", k.load(word, zero), zero))
        k.set_condition(handle, k.convert(holds, "i32"))
    return k.finish()
