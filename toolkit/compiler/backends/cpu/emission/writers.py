"""Primitives for the lowered kinds of operation: descriptors, packed weights, calls in the generated function."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.log_softmax import write_log_softmax
from toolkit.compiler.backends.cpu.elementwise.nests import write_nest
from toolkit.compiler.backends.cpu.elementwise.operations import (
    CompiledLogSoftmax,
    CompiledSum,
    FusedLoopNest,
    NumpySigmoid,
    NumpySum,
    ScalarExpression,
    Ufunc,
)
from toolkit.compiler.backends.cpu.elementwise.sums import write_sum
from toolkit.compiler.backends.cpu.elementwise.tiles import (
    Filled,
    Numbers,
    Tiled,
    write_filled,
    write_numbers,
    write_tiled,
)
from toolkit.compiler.backends.cpu.elementwise.ufuncs import write_scalar, write_sigmoid, write_total, write_ufunc
from toolkit.compiler.backends.cpu.elementwise.views import write_alias, write_join, write_view
from toolkit.compiler.backends.cpu.emission.calls import (
    write_dereference,
    write_loop,
    write_pin,
    write_read_variable,
    write_select,
    write_test,
)
from toolkit.compiler.backends.cpu.emission.emit import Emitter, Writer
from toolkit.compiler.backends.cpu.emission.operations import Join, Pin, StagedCopy
from toolkit.compiler.backends.cpu.emission.primitives import (
    BINARY,
    ELTWISE,
    Operand,
    alone,
    chain,
    described,
    fixed,
    make,
    pooling,
    refusals,
)
from toolkit.compiler.backends.cpu.integers.conversions import (
    Dequantize,
    Quantize,
    write_dequantize,
    write_quantize,
)
from toolkit.compiler.backends.cpu.integers.products import (
    Int8Convolution,
    Int8MatMul,
    write_int8_conv,
    write_int8_matmul,
)
from toolkit.compiler.backends.cpu.learning.operations import GatherRows, ScatterRows, UpdateVariable
from toolkit.compiler.backends.cpu.learning.pools import (
    TiledMaxPool,
    TiledMaxPoolGradient,
    write_tiled_pool,
    write_tiled_pool_gradient,
)
from toolkit.compiler.backends.cpu.networks.activations import write_activate
from toolkit.compiler.backends.cpu.networks.depthwise import write_depthwise
from toolkit.compiler.backends.cpu.networks.norms import write_batch_norm, write_batch_norm_gradient
from toolkit.compiler.backends.cpu.networks.operations import (
    Activate,
    DepthwiseConvolution,
    PackedGemm,
    Strips,
    Winograd,
    WinogradFilterGradient,
)
from toolkit.compiler.backends.cpu.networks.panels import write_panels
from toolkit.compiler.backends.cpu.networks.products import write_conv, write_matmul
from toolkit.compiler.backends.cpu.networks.strips import write_strips
from toolkit.compiler.backends.cpu.networks.winograd import write_winograd, write_winograd_filter
from toolkit.compiler.backends.cpu.recurrent.layers import write_layer
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, ReadVariable, Select, Test
from toolkit.compiler.ir.operations.elementwise import Elementwise, ReluGradient
from toolkit.compiler.ir.operations.images import Resize
from toolkit.compiler.ir.operations.memory import Alias, Concat, Convert, Pad, Permute, Subsample, View
from toolkit.compiler.ir.operations.norms import BatchNorm, BatchNormGradient, LayerNorm, Softmax
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction, PoolGradient
from toolkit.compiler.ir.operations.products import (
    Convolution,
    ConvolutionFilterGradient,
    ConvolutionInputGradient,
    FlipFilter,
    MatMul,
)
from toolkit.compiler.ir.operations.recurrent import GruLayer, LinearBeforeResetGruLayer, LstmLayer
from toolkit.compiler.ir.operations.reductions import Reduce, ReduceFunction
from toolkit.compiler.ir.post_ops import Combine, PostOp
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import Frame, frame_of
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import threads
from toolkit.kernels.cpu.onednn.memory import strided
from toolkit.kernels.cpu.onednn.primitive import (
    FORWARD_INFERENCE,
    FORWARD_TRAINING,
    SOFTMAX_ACCURATE,
    Arg,
    Binary,
    Eltwise,
    Reduction,
    reorder,
)
from toolkit.kernels.cpu.onednn.windows import PoolGeometry, strips_of
from toolkit.kernels.tensors import F32, row_major


def write_pool(emitter: Emitter, operation: Pool) -> None:
    """Max and average pools, channels last."""
    x, y, pool = operation.input, operation.output, pooling(operation)
    stages = strips_of(pool, threads(), emitter.target.threads.mean)
    if stages is not None and x.dtype == y.dtype:
        _write_strips(emitter, operation, stages)
        return
    source, target = pool.descs(x.dtype, y.dtype)
    with refusals(operation):
        primitive = pool.forward(x.dtype, y.dtype)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.DST, y, target)])
    if operation.function is PoolFunction.MAX and emitter.block.keeps_nan:  # oneDNN passes NaN over, max does not
        emitter.shared.update(isnan=np.isnan, amax=np.max)
        given, kernel = emitter.read(x), emitter.share("f", operation.step.compute)
        emitter.line(f"if isnan(amax({given})): copyto({emitter.read(y)}, {kernel}({given}))")


def _write_strips(emitter: Emitter, operation: Pool, stages: tuple[PoolGeometry, PoolGeometry]) -> None:
    """The mean of an image as the mean of the means of strips, which threads compute side by side."""
    x, y = operation.input, operation.output
    between = emitter.passing(stages[0].descs(x.dtype, x.dtype)[1].size)
    for stage, given, made in ((stages[0], x, between), (stages[1], between, y)):
        source, target = stage.descs(x.dtype, x.dtype)
        with refusals(operation):
            primitive = stage.forward(x.dtype, x.dtype)
        emitter.execute(primitive, [(Arg.SRC, given, source), (Arg.DST, made, target)])


#: oneDNN's names
_REDUCTIONS = {ReduceFunction.MEAN: Reduction.MEAN, ReduceFunction.SUM: Reduction.SUM}


def write_reduce(emitter: Emitter, operation: Reduce) -> None:
    """Reductions over some axes."""
    x, y, axes = operation.input, operation.output, operation.axes
    assert x.shape is not None
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    image = len(x.shape) in (4, 5) and len(x.shape) - 1 not in axes
    describe = memory.channels_last if image else memory.dense
    source, target = describe(x.shape, x.dtype), describe(kept, y.dtype)
    primitive = make(operation, "reduction", _REDUCTIONS[operation.function], source, target, 0.0, 0.0)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.DST, y, target)])


def write_softmax(emitter: Emitter, operation: Softmax) -> None:
    """Softmax over the last axis."""
    x = operation.input
    assert x.shape is not None
    columns = x.shape[-1]
    desc = memory.dense((x.size // columns, columns), x.dtype)
    primitive = make(operation, "softmax_forward", FORWARD_INFERENCE, SOFTMAX_ACCURATE, desc, desc, 1)
    emitter.execute(primitive, [(Arg.SRC, x, desc), (Arg.DST, operation.output, desc)])


def write_layer_norm(emitter: Emitter, operation: LayerNorm) -> None:
    """Layer normalisation over the last axis with scale and shift."""
    x = operation.input
    assert x.shape is not None
    columns = x.shape[-1]
    desc = memory.dense((x.size // columns, columns), x.dtype)
    flags = 2 | 4  # use_scale, use_shift
    primitive = make(
        operation, "layer_normalization_forward", FORWARD_INFERENCE, desc, desc, None, operation.epsilon, flags
    )
    scale, shift = fixed(operation.scale), fixed(operation.shift)
    emitter.execute(
        primitive,
        [(Arg.SRC, x, desc), (Arg.DST, operation.output, desc), (Arg.SCALE, scale, None), (Arg.SHIFT, shift, None)],
    )


def write_elementwise(emitter: Emitter, operation: Elementwise) -> None:
    """A chain of element functions: one primitive, whose first is the primitive itself and the rest post-ops."""
    x, y = operation.input, operation.output
    assert y.shape is not None
    frame, post_ops = _widened(operation, emitter.target.primitives.channels)
    desc = described(frame, frame.shape, x.dtype)
    assert desc is not None and x.dtype == y.dtype
    first = post_ops[0]
    if isinstance(first, Combine):
        chained, operands = chain(operation, frame, None, post_ops[1:])
        other = first.other
        assert other.shape is not None
        second = described(frame, frame.shape if other.shape == y.shape else other.shape, other.dtype)
        assert second is not None
        primitive = make(operation, "binary", BINARY[first.function], desc, second, desc, posts=chained)
        place = fixed(other.constant, second) if other.is_constant else other
        arguments: list[Operand] = [(Arg.SRC, x, desc), (Arg.SRC_1, place, second), (Arg.DST, y, desc)]
        emitter.execute(primitive, [*arguments, *operands])
    elif len(post_ops) == 1:
        algorithm = ELTWISE[first.function]
        primitive = make(
            operation, "eltwise_forward", FORWARD_INFERENCE, algorithm, desc, desc, first.alpha, first.beta
        )
        emitter.execute(primitive, [(Arg.SRC, x, desc), (Arg.DST, y, desc)])
    else:
        # an eltwise primitive with post-ops would be oneDNN's reference code; max(x, x) with them is not
        chained, operands = chain(operation, frame, None, post_ops)
        primitive = make(operation, "binary", Binary.MAX, desc, desc, desc, posts=chained)
        emitter.execute(primitive, [(Arg.SRC, x, desc), (Arg.SRC_1, x, desc), (Arg.DST, y, desc), *operands])


def _widened(operation: Elementwise, channels: int) -> tuple[Frame, Sequence[PostOp]]:
    """How dimensions are told to oneDNN; constants for a few channels are repeated along a whole row of pixels.

    Args:
        channels: from which on they are as they are.
    """
    shape = operation.output.shape
    assert shape is not None
    as_they_are = frame_of(shape), operation.post_ops
    if len(shape) < 3 or shape[-1] >= channels:
        return as_they_are
    post_ops: list[PostOp] = []
    row = shape[-1] * shape[-2]
    for post in operation.post_ops:
        if isinstance(post, Combine) and post.other.shape != shape:
            array = post.other.constant
            is_row = array is not None and array.size == shape[-1] and array.shape[-1:] == (shape[-1],)
            if array is None or not (is_row or array.size == 1):
                return as_they_are
            wide = np.resize(np.asarray(array).reshape(-1), row)
            post = Combine(post.function, Value(F32, wide.shape, wide))
        post_ops.append(post)
    return Frame((operation.output.size // row, row), image=False), post_ops


def write_relu_gradient(emitter: Emitter, operation: ReluGradient) -> None:
    """dy where x > 0, else 0."""
    dy, x = operation.gradient, operation.input
    frame = frame_of(operation.output.shape or ())
    desc = described(frame, frame.shape, F32)
    hint = make(operation, "eltwise_forward", FORWARD_TRAINING, Eltwise.RELU, desc, desc, 0.0, 0.0)
    primitive = make(operation, "eltwise_backward", Eltwise.RELU, desc, desc, desc, 0.0, 0.0, hint.descriptor)
    emitter.execute(primitive, [(Arg.SRC, x, desc), (Arg.DIFF_DST, dy, desc), (Arg.DIFF_SRC, operation.output, desc)])


def write_concat(emitter: Emitter, operation: Concat) -> None:
    """Joining along an axis."""
    y, axis, parts = operation.output, operation.axis, operation.parts
    assert y.shape is not None
    descs = [memory.dense(value.shape or (), value.dtype) for value in parts]
    target = memory.dense(y.shape, y.dtype)
    primitive = make(operation, "concat", target, len(descs), axis, memory.array_of(descs))
    operands: list[Operand] = [
        (Arg.MULTIPLE_SRC + i, value, desc) for i, (value, desc) in enumerate(zip(parts, descs, strict=True))
    ]
    emitter.execute(primitive, [*operands, (Arg.DST, y, target)])


def write_permute(emitter: Emitter, operation: Permute) -> None:
    """A transposed copy."""
    x, y = operation.input, operation.output
    assert x.shape is not None and y.shape is not None
    strides = row_major(x.shape)
    source = strided(y.shape, x.dtype, tuple(strides[axis] for axis in operation.axes))
    target = memory.dense(y.shape, y.dtype)
    with refusals(operation), alone(emitter.target.threads.moved * x.size, emitter.alone):
        primitive = reorder(source, target)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.DST, y, target)])


def write_convert(emitter: Emitter, operation: Convert) -> None:
    """A copy in another precision."""
    x, y = operation.input, operation.output
    source, target = memory.dense((x.size,), x.dtype), memory.dense((x.size,), y.dtype)
    emitter.execute(reorder(source, target), [(Arg.SRC, x, source), (Arg.DST, y, target)])


_LINEAR = 0x2FFF1  # dnnl_resampling_linear


def write_resize(emitter: Emitter, operation: Resize) -> None:
    """Bilinear interpolation."""
    x, y = operation.input, operation.output
    assert x.shape is not None and y.shape is not None
    source, target = memory.channels_last(x.shape, x.dtype), memory.channels_last(y.shape, y.dtype)
    primitive = make(operation, "resampling_forward", FORWARD_INFERENCE, _LINEAR, None, source, target)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.DST, y, target)])


def write_subsample(emitter: Emitter, operation: Subsample) -> None:
    """Every n-th row and column of an image."""
    x, y, steps = operation.input, operation.output, operation.strides
    assert x.shape is not None and y.shape is not None
    first, *spatial, last = row_major(x.shape)
    strides = (first, *(stride * n for stride, n in zip(spatial, steps, strict=True)), last)
    source, target = strided(y.shape, x.dtype, strides), memory.dense(y.shape, y.dtype)
    emitter.execute(reorder(source, target), [(Arg.SRC, x, source), (Arg.DST, y, target)])


def write_pad(emitter: Emitter, operation: Pad) -> None:
    """Fill the borders, copy the inside."""
    y, padding = operation.output, operation.padding
    assert y.shape is not None
    whole = emitter.read(y)
    value = emitter.share("k", np.float32(operation.value))
    inside: list[slice] = []
    for axis, ((before, after), size) in enumerate(zip(padding, y.shape, strict=True)):
        for start, stop in ((0, before), (size - after, size)):
            if stop > start:
                border = (*inside, *(slice(None),) * (axis - len(inside)), slice(start, stop))
                emitter.line(f"{emitter.view(y, border)}.fill({value})")
        inside.append(slice(before, size - after))
    assert whole
    emitter.line(f"copyto({emitter.view(y, tuple(inside))}, {emitter.read(operation.input)})")


def write_stage(emitter: Emitter, operation: StagedCopy) -> None:
    """Copy a value from outside into the arena."""
    emitter.line(f"copyto({emitter.read(operation.output)}, {emitter.read(operation.input)})")


def _of_learning(module: str, name: str) -> Writer:
    """A writer of what programs that learn have, or look rows up, imported when there is something to write."""

    def write(emitter: Emitter, operation: Any) -> None:
        writer: Writer = getattr(import_module(f"toolkit.compiler.backends.cpu.learning.{module}"), name)
        writer(emitter, operation)

    return write


WRITERS: dict[type[Operation], Writer] = {
    Int8Convolution: write_int8_conv,
    Int8MatMul: write_int8_matmul,
    Quantize: write_quantize,
    Dequantize: write_dequantize,
    Filled: write_filled,
    Tiled: write_tiled,
    TiledMaxPool: write_tiled_pool,
    TiledMaxPoolGradient: write_tiled_pool_gradient,
    Activate: write_activate,
    BatchNorm: write_batch_norm,
    BatchNormGradient: write_batch_norm_gradient,
    Concat: write_concat,
    Convert: write_convert,
    Convolution: write_conv,
    ConvolutionFilterGradient: _of_learning("training", "write_conv_filter"),
    ConvolutionInputGradient: _of_learning("training", "write_conv_input"),
    DepthwiseConvolution: write_depthwise,
    Elementwise: write_elementwise,
    FlipFilter: _of_learning("training", "write_flip_filter"),
    GatherRows: _of_learning("rows", "write_gather_rows"),
    GruLayer: write_layer,
    Join: write_join,
    LayerNorm: write_layer_norm,
    LinearBeforeResetGruLayer: write_layer,
    LstmLayer: write_layer,
    MatMul: write_matmul,
    FusedLoopNest: write_nest,
    Pad: write_pad,
    Permute: write_permute,
    PackedGemm: write_panels,
    Pool: write_pool,
    PoolGradient: _of_learning("training", "write_pool_gradient"),
    Reduce: write_reduce,
    ReluGradient: write_relu_gradient,
    Resize: write_resize,
    ScatterRows: _of_learning("rows", "write_scatter_rows"),
    NumpySigmoid: write_sigmoid,
    Softmax: write_softmax,
    Strips: write_strips,
    Subsample: write_subsample,
    NumpySum: write_total,
    StagedCopy: write_stage,
    CompiledLogSoftmax: write_log_softmax,
    CompiledSum: write_sum,
    Ufunc: write_ufunc,
    Winograd: write_winograd,
    WinogradFilterGradient: write_winograd_filter,
    Numbers: write_numbers,
    ScalarExpression: write_scalar,
    UpdateVariable: _of_learning("updates", "write_update"),
    Pin: write_pin,
    ReadVariable: write_read_variable,
    Alias: write_alias,
    Dereference: write_dereference,
    Loop: write_loop,
    Select: write_select,
    Test: write_test,
    View: write_view,
}


def is_emitted(operation: Operation) -> bool:
    """Whether code is made of an operation, instead of a call of its node's kernel."""
    return type(operation) in WRITERS
