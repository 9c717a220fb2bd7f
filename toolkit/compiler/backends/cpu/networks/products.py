"""Primitives for convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Workspace
from toolkit.compiler.backends.cpu.emission.primitives import (
    Operand,
    alone,
    chain,
    converted,
    convolution,
    fixed,
    make,
    packed,
    refusals,
    summed,
)
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import Combine, PostOp
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import Frame, StridedLayout, frame_of
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import one_thread
from toolkit.kernels.cpu.onednn.memory import Desc, any_layout, strided
from toolkit.kernels.cpu.onednn.primitive import Arg, DescriptorQuery, Quantization, reorder
from toolkit.kernels.tensors import F32, row_major


def write_conv(emitter: Emitter, operation: Operation) -> None:
    """Convolution: HWIO becomes (groups,) O, I, H, W.

    A constant filter is packed once; one that is computed, read from a variable or scaled by gates is
    in every step.
    """
    assert isinstance(operation, Convolution)
    x, y, bias = operation.input, operation.output, operation.bias
    assert x.shape is not None and y.shape is not None
    geometry = convolution(operation.windows, x.shape, operation.filter_shape, y.shape)
    source, target = memory.channels_last(x.shape, x.dtype), memory.channels_last(y.shape, y.dtype)
    posts, operands = chain(operation, frame_of(y.shape), summed(emitter, operation))
    with refusals(operation):
        primitive = geometry.forward(
            x.dtype,
            y.dtype,
            memory.dense(bias.shape, F32) if bias is not None else None,
            posts,
            prefer=geometry.preferred(x.dtype, y.dtype, emitter.target.primitives),
        )
    plain = geometry.filter_desc()
    wanted = primitive.desc(DescriptorQuery.WEIGHTS)
    if operation.gates is not None:
        weights, layout = _gated(emitter, operation, operation.gates, plain, wanted), wanted
    elif operation.filter is not None:
        weights, layout = converted(emitter, operation.filter, plain, wanted)
    else:
        weights, layout = packed(np.ascontiguousarray(operation.weights), plain, wanted), None
    arguments: list[Operand] = [(Arg.SRC, x, source), (Arg.WEIGHTS, weights, layout), (Arg.DST, y, target)]
    if bias is not None:
        arguments.append((Arg.BIAS, fixed(bias), None))
    emitter.execute(primitive, [*arguments, *operands])


def _gated(emitter: Emitter, operation: Convolution, gates: Value, plain: Desc, wanted: Desc) -> Workspace:
    """A constant filter with its input channels scaled, packed in every step (`scales`)."""
    made = emitter.passing(wanted.size)
    scales = memory.dense((gates.size,), F32)
    inputs_axis = 1 << 1
    with refusals(operation, operation.gating), one_thread():  # filters are small
        primitive = reorder(plain, wanted, Quantization(scales={Arg.SRC: inputs_axis}))
    emitter.execute(
        primitive,
        [(Arg.SRC, fixed(operation.weights, plain), plain), (Arg.DST, made, wanted),
         (Arg.SCALES_OF | Arg.SRC, gates, scales)],
    )  # fmt: skip
    return made


def write_matmul(emitter: Emitter, operation: Operation) -> None:
    """Matrix products; of constant weights in one product over all rows, with the weights packed.

    Weights that stay what they are over the iterations of a loop are packed before the first.
    """
    assert isinstance(operation, MatMul)
    a, y, bias, weights = operation.left, operation.output, operation.bias, operation.weights
    assert a.shape is not None and y.shape is not None
    if operation.right is not None and _is_turned(emitter, operation, operation.right):
        _write_turned(emitter, operation, operation.right)
        return
    if weights is not None and not (operation.transpose_left and len(a.shape) > 2):
        frame = Frame(y.shape, image=False)
        rows, columns = y.size // y.shape[-1], y.shape[-1]
        inner = weights.shape[0]
        strides = (1, rows) if operation.transpose_left else (inner, 1)
        source = strided((rows, inner), a.dtype, strides)
        target = strided((rows, columns), y.dtype, (columns, 1))
        posts, operands = chain(operation, frame, None)
        with alone(y.size * inner, emitter.alone):
            primitive = make(
                operation, "matmul", source, any_layout((inner, columns), a.dtype),
                memory.dense((1, columns), F32) if bias is not None else None, target, posts=posts,
            )  # fmt: skip
        # a view with gaps, backwards or of one row for all is copied: what such strides span is more than it has
        is_turned = weights.flags.f_contiguous and not weights.flags.c_contiguous
        weights = weights if is_turned else np.ascontiguousarray(weights)
        plain = strided((inner, columns), F32, (1, inner) if is_turned else (columns, 1))
        second: Operand = (Arg.WEIGHTS, packed(weights, plain, primitive.desc(DescriptorQuery.WEIGHTS)), None)
        bias_desc = memory.dense((1, columns), F32)
    else:
        frame = Frame(y.shape, image=False)
        if operation.post_ops and len(y.shape) > 2:
            frame = _BatchFrame(y.shape)
        source, other, target = _batch_descs(operation)
        posts, operands = chain(operation, frame, None)
        columns = y.shape[len(y.shape) - 1]
        lead = len(y.shape) - 1
        bias_desc = strided((1,) * lead + (columns,), F32, (columns,) * lead + (1,))
        inner = a.shape[-2 if operation.transpose_left else -1]
        right = operation.right
        stays = right is not None and len(y.shape) == 2 and emitter.stays(right)
        wanted = any_layout((inner, columns), a.dtype) if stays else other
        with alone(y.size * inner, emitter.alone):
            primitive = make(
                operation, "matmul", source, wanted, bias_desc if bias is not None else None, target, posts=posts
            )
        if right is None:
            second = (Arg.WEIGHTS, fixed(weights, other), other)
        elif stays:
            if operation.first_column is not None:
                other = memory.part(other, (inner, columns), (0, operation.first_column))
            second = (Arg.WEIGHTS, *emitter.packed(right, other, primitive.desc(DescriptorQuery.WEIGHTS)))
        else:
            second = (Arg.WEIGHTS, right, other)
    arguments: list[Operand] = [(Arg.SRC, a, source), second, (Arg.DST, y, target)]
    if bias is not None:
        arguments.append((Arg.BIAS, fixed(bias.reshape(1, -1), bias_desc), None))
    emitter.execute(primitive, [*arguments, *operands])


def takes_post_ops(operation: MatMul, posts: Sequence[PostOp]) -> bool:
    """Whether oneDNN has fast code for a product of several matrices that does this to its output as well.

    It has none for many tensors that are the same for some of the matrices. Found only when the product is written,
    that would cost another compilation of the whole program.
    """
    y, bias = operation.output, operation.bias
    if operation.right is None or y.shape is None or len(y.shape) < 3:
        return True
    if not any(isinstance(post, Combine) for post in posts):
        return True
    source, other, target = _batch_descs(operation)
    lead = len(y.shape) - 1
    columns = y.shape[-1]
    shift = strided((1,) * lead + (columns,), F32, (columns,) * lead + (1,)) if bias is not None else None
    wanted, _ = chain(operation, _BatchFrame(y.shape), None, [*operation.post_ops, *posts])
    try:
        make(operation, "matmul", source, other, shift, target, posts=wanted)
    except NotSupportedError:
        return False
    return True


def _is_turned(emitter: Emitter, operation: MatMul, b: Value) -> bool:
    """Whether a . b^T takes less time as the transpose of b . a^T, for which a large b need not be packed."""
    a = operation.left
    assert a.shape is not None and b.shape is not None
    if not operation.transpose_right or len(a.shape) != 2 or len(b.shape) != 2 or emitter.stays(b):
        return False
    if operation.post_ops or operation.bias is not None or a.dtype != F32:
        return False
    rows = a.shape[1 if operation.transpose_left else 0]
    sizes = emitter.target.primitives
    is_large = b.size >= max(sizes.turned_weights, sizes.turned_moves * rows * sum(b.shape))
    return rows >= sizes.turned_rows and is_large


def _write_turned(emitter: Emitter, operation: MatMul, b: Value) -> None:
    """(b . a^T)^T"""
    a, y = operation.left, operation.output
    assert b.shape is not None and y.shape is not None
    rows, (columns, inner) = y.shape[0], b.shape
    second, made = memory.dense((inner, rows), F32), memory.dense((columns, rows), F32)
    first, wanted = strided((inner, rows), F32, (1, inner)), strided((columns, rows), F32, (1, columns))
    start = emitter.passing(second.size + made.size)
    given: Operand = (Arg.WEIGHTS, a, second)
    if not operation.transpose_left:
        given = (Arg.WEIGHTS, start, second)
        emitter.execute(reorder(first, second), [(Arg.SRC, a, first), (Arg.DST, start, second)])
    between = Workspace(start.offset + second.size)
    source = memory.dense(b.shape, F32)
    primitive = make(operation, "matmul", source, second, None, made)
    emitter.execute(primitive, [(Arg.SRC, b, source), given, (Arg.DST, between, made)])
    emitter.execute(reorder(made, wanted), [(Arg.SRC, between, made), (Arg.DST, y, wanted)])


class _BatchFrame(Frame):
    """Post-op tensors of a batched product keep all their dimensions."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__(shape, image=False)

    def layout(self, shape: tuple[int, ...]) -> StridedLayout | None:
        full = (1,) * (len(self.shape) - len(shape)) + tuple(shape)
        return StridedLayout(full, row_major(full))


def _batch_descs(operation: MatMul) -> tuple[Desc, Desc, Desc]:
    """Descriptors of a batched product; batch dimensions of size 1 are broadcast, transposes are strides."""
    first, y = operation.left, operation.output
    assert y.shape is not None
    rank = len(y.shape)
    second = operation.right or Value(F32, operation.right_shape)
    turned = operation.is_right_turned
    return (
        memory.matrix(first.shape or (), rank, first.dtype, transposed=operation.transpose_left),
        memory.matrix(second.shape or (), rank, second.dtype, transposed=turned),
        memory.matrix(y.shape, rank, y.dtype),
    )
