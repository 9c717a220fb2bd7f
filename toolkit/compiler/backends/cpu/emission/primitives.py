"""What the writers of primitives share: constants packed, chains of post-ops, geometry, refusals."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.interning import packing
from toolkit.compiler.backends.cpu.networks.operations import PackedGemm
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction, PoolGradient
from toolkit.compiler.ir.operations.products import Convolution, ConvolutionWindows
from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, Combine, PostOp, UnaryFunction, post_ops_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step
from toolkit.compiler.transforms.elements import Frame
from toolkit.kernels.cpu.memory.addresses import aligned, held
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import OneDnnError, one_thread
from toolkit.kernels.cpu.onednn.memory import Desc, Memory
from toolkit.kernels.cpu.onednn.primitive import (
    PLAIN,
    Arg,
    Binary,
    BinaryPost,
    Eltwise,
    EltwisePost,
    Pooling,
    Primitive,
    Quantization,
    SumPost,
    execute,
    reorder,
)
from toolkit.kernels.cpu.onednn.windows import ConvolutionGeometry as Geometry
from toolkit.kernels.cpu.onednn.windows import PoolGeometry

Operand = tuple[int, Any, Desc | None]
#: oneDNN's names
ELTWISE = {function: Eltwise[function.name] for function in UnaryFunction}
BINARY = {function: Binary[function.name] for function in BinaryFunction}


def fixed(array: Any, desc: Desc | None = None) -> Memory:
    """A memory over a constant."""
    array = held(array, "a constant")
    return Memory(desc or memory.dense(array.shape, array.dtype), array)


def packed(array: Any, plain: Desc, wanted: Desc) -> Memory:
    """A constant, which may be a transposed view, in the layout that a primitive wants; interned.

    Args:
        plain: the array's own layout.
    """
    source = Memory(plain, array)
    if plain.same(wanted):
        return source

    def pack() -> Any:
        bytes_of = aligned(wanted.size, "a packed constant")
        execute(reorder(plain, wanted), [(Arg.SRC, source), (Arg.DST, Memory(wanted, bytes_of))])
        return bytes_of

    made = packing(array, (packed, wanted.size), pack, (plain, wanted))
    return Memory(wanted, made.result, keep=made)


def converted(emitter: Emitter, operand: Any, plain: Desc, wanted: Desc) -> tuple[Any, Desc | None]:
    """A tensor in another layout, converted when the step runs; itself when it has that layout already."""
    if plain.same(wanted):
        return operand, plain
    scratch = emitter.scratch(wanted)
    emitter.execute(reorder(plain, wanted), [(Arg.SRC, operand, plain), (Arg.DST, scratch, None)])
    return scratch, None


def convolution(windows: ConvolutionWindows, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> Geometry:
    """The geometry of a convolution."""
    return Geometry(x, w, y, windows.strides, windows.dilations, windows.padding, windows.groups, windows.depthwise)


#: oneDNN's names
_POOLING = {PoolFunction.MAX: Pooling.MAX, PoolFunction.MEAN: Pooling.AVG_EXCLUDE_PADDING}


def pooling(operation: Pool) -> PoolGeometry:
    """The geometry of a pool."""
    x, windows = relations.shape(operation.input), (operation.window, operation.strides, operation.padding)
    return PoolGeometry(_POOLING[operation.function], x, operation.pooled_shape, *windows)


def pooling_gradient(operation: PoolGradient) -> PoolGeometry:
    """The geometry of a max pool whose gradient is wanted."""
    x, y = relations.shapes(operation.input, operation.pooled)
    return PoolGeometry(Pooling.MAX, x, y, operation.window, operation.strides, operation.padding)


def described(frame: Frame, shape: tuple[int, ...], dtype: Any) -> Desc | None:
    """A tensor that is broadcast to a frame, for oneDNN; None where that cannot be said."""
    layout = frame.layout(shape)
    return None if layout is None else memory.strided(layout.sizes, dtype, layout.strides)


def chain(
    operation: Operation, frame: Frame, sum_of: Value | None, post_ops: Iterable[PostOp] | None = None
) -> tuple[list[Any], list[Operand]]:
    """oneDNN's post-ops of an operation and the arguments that they take.

    Args:
        sum_of: what was in the output's place before, and is added there.
        post_ops: others than the operation's own.
    """
    posts: list[Any] = []
    operands: list[Operand] = []
    for index, post in enumerate(post_ops_of(operation) if post_ops is None else post_ops):
        if isinstance(post, Apply):
            posts.append(EltwisePost(ELTWISE[post.function], post.alpha, post.beta))
            continue
        other: Value = post.other
        if other is sum_of and post.function is BinaryFunction.ADD:
            posts.append(SumPost())
            sum_of = None
            continue
        assert other.shape is not None
        same = other.shape == operation.output.shape
        desc = described(frame, frame.shape if same else other.shape, other.dtype)
        assert desc is not None
        posts.append(BinaryPost(BINARY[post.function], desc))
        place: Any = fixed(other.constant, desc) if other.is_constant else other
        operands.append((Arg.POST_OP * (index + 1) | Arg.SRC_1, place, desc))
    return posts, operands


def sum_candidate(operation: Operation) -> Value | None:
    """The input that may be summed in place: added as a tensor of the output's shape by a convolution."""
    if not isinstance(operation, Convolution | PackedGemm):
        return None
    for post in operation.post_ops:
        if not isinstance(post, Combine) or post.function is not BinaryFunction.ADD or post.other.is_constant:
            continue
        if operation.inputs.count(post.other) > 1:  # it is convolved as well, or taken by another post-op
            continue
        if post.other.shape == operation.output.shape and post.other.dtype == operation.output.dtype:
            return post.other
    return None


def summed(emitter: Emitter, operation: Operation) -> Value | None:
    """The sum candidate, when the arena put the output in its place."""
    value = sum_candidate(operation)
    storage = emitter.layout.storage
    return value if value is not None and storage.get(value) is storage[operation.output] else None


def alone(multiplications: float, least: float) -> AbstractContextManager[None]:
    """Primitives made meanwhile are for one thread where there is little to do."""
    return one_thread() if multiplications < least else nullcontext()


def make(
    operation: Operation,
    name: str,
    *args: Any,
    posts: Sequence[Any] = (),
    allow_reference: bool = False,
    quantization: Quantization = PLAIN,
) -> Primitive:
    """A primitive by oneDNN's name."""
    with refusals(operation):
        return Primitive(name, *args, posts=posts, allow_reference=allow_reference, quantization=quantization)


@contextmanager
def refusals(operation: Operation, steps: Sequence[Step] = ()) -> Generator[None]:
    """What oneDNN refuses is what the operation cannot have.

    Args:
        steps: those of the operation that are to blame; all of them where there are none.

    Raises:
        NotSupportedError: it was refused.
    """
    try:
        yield
    except OneDnnError as error:
        raise NotSupportedError(operation, str(error), steps) from None
