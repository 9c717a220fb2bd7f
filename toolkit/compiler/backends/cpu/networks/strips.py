"""A 1x1 convolution and the depthwise one behind it, strip by strip: what is in between never leaves the cache.

MobileNet and its kin widen an image sixfold, convolve each channel and narrow it again; the wide tensors are the
largest of the network, and writing and reading them takes longer than computing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Nested, Region, Workspace
from toolkit.compiler.backends.cpu.networks.depthwise import Depthwise
from toolkit.compiler.backends.cpu.networks.operations import DepthwiseConvolution, PackedGemm, Strip, Strips
from toolkit.compiler.backends.cpu.networks.panels import GemmProblem, Product, choose, gemm_fields, is_product
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.shares import calls
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import F32
from toolkit.target.target import Target
from toolkit.target.thresholds import StripThresholds


def join_strips(block: Block, target: Target) -> None:
    """Join 1x1 convolutions and the depthwise ones that alone take their output."""
    for deep in block.operations:
        wide = _widened(deep, target.strips)
        if wide is not None and isinstance(deep, DepthwiseConvolution):
            _join(block, wide, deep, target)


def _widened(deep: Operation, sizes: StripThresholds) -> Convolution | PackedGemm | None:
    """The convolution whose output a depthwise one takes, if both are better computed together."""
    if not isinstance(deep, DepthwiseConvolution) or len(deep.inputs) > 1 or deep.input.dtype != F32:
        return None
    between = deep.input
    wide = between.producer
    if type(wide) is not Convolution and type(wide) is not PackedGemm:
        return None
    if wide.conditions != deep.conditions or len(wide.inputs) > 1:
        return None
    can_join = between.nbytes >= sizes.least and between.sole_user is deep
    return wide if can_join and (isinstance(wide, PackedGemm) or is_product(wide)) else None


def _join(block: Block, wide: Convolution | PackedGemm, deep: DepthwiseConvolution, target: Target) -> None:
    """Put one operation in the place of both, with their like in its body."""
    fields = gemm_fields(wide)
    x, between, y = fields["input"], *(Value(value.dtype, value.shape) for value in (deep.input, deep.output))
    assert between.shape is not None and y.shape is not None
    shares = tuple(_shares(deep, y.shape[0], deep.threads, target.strips.strip))
    heights = sorted({strip.bottom - strip.top for share in shares for strip in share})
    width, channels = between.shape[2:]
    work = GemmProblem(heights[-1] * width, x.shape[-1], channels)
    split = choose(work, [rows * width for rows in heights], target.packed_gemm)
    body, argument = Block(), Value(x.dtype, x.shape)
    fields |= {"input": argument, "split": split, "outputs": [between], "steps": wide.steps}
    body.append(PackedGemm(**fields))
    narrowing: dict[str, Any] = {**deep.own_fields(), "input": between}
    body.append(DepthwiseConvolution(**narrowing, outputs=[y], steps=deep.steps))
    body.arguments, body.results = [argument], [y]
    y.is_result = True
    steps = [*wide.steps, *deep.steps]
    deep.become(Strips, input=x, body=body, shares=shares, steps=steps)
    block.erase(wide)


def write_strips(emitter: Emitter, operation: Operation) -> None:
    """The call of a compiled function that calls one convolution and then the other for each strip."""
    assert isinstance(operation, Strips)
    wide, deep, shares = operation.widening, operation.narrowing, operation.shares
    x, between, y = operation.input, wide.output, operation.output
    assert x.shape is not None and between.shape is not None and y.shape is not None
    _, height, width, channels = between.shape
    line, down = 4 * width * channels, y.shape[1]
    heights = sorted({strip.bottom - strip.top for share in shares for strip in share})
    widening = Product(emitter, wide, threads=False)
    convolution = Depthwise(emitter, deep, threads=False)
    nested: list[Region] = []
    counts = [len(shares)]
    for index, share in enumerate(shares):
        counts += [len(nested) // 2, len(nested) // 2 + 2 * len(share)]
        start = index * (heights[-1] * line + widening.sums)
        for strip in share:
            top, bottom = (strip.image * height + row for row in (strip.top, strip.bottom))
            first, last = (strip.image * down + row for row in (strip.first, strip.last))
            base, before = Workspace(start), -top * line  # where the first row of all would be
            product = widening.operands(
                x, base, [(top * width, bottom * width, 0, wide.split.panels)], start + heights[-1] * line, before
            )
            rows = convolution.operands(base, y, [(first, last, 0, channels // LANES)], (top, bottom), before)
            nested += [widening.function.address, Nested(product), convolution.function.address, Nested(rows)]
    emitter.keep += [widening.function, convolution.function]
    spread = len(shares) > 1
    machine = compiler()
    assert machine is not None
    function = machine.function(calls(threads=spread), openmp_symbols(*OPENMP) if spread else {})
    emitter.execute_native(function, [*counts, *nested])


def _shares(deep: DepthwiseConvolution, images: int, threads: int, size: int) -> list[tuple[Strip, ...]]:
    """The strips of each thread, which lie one below the other.

    Args:
        size: bytes of a strip of what is in between.
    """
    down = deep.output.shape[1] if deep.output.shape else 0
    shares: list[tuple[Strip, ...]] = []
    for index in range(threads):
        first, last = (images * down * at // threads for at in (index, index + 1))
        share: list[Strip] = []
        for image in range(images):
            share += _strips(deep, image, max(first - image * down, 0), min(last - image * down, down), size)
        if share:
            shares.append(tuple(share))
    return shares


def _strips(deep: DepthwiseConvolution, image: int, first: int, last: int, size: int) -> Iterator[Strip]:
    """The rows from `first` to `last` of an image's output, in strips of about the same height."""
    windows, x = deep.windows, deep.input.shape
    assert x is not None
    step, apart, above = windows.strides[0], windows.dilations[0], windows.padding[0][0]
    reach = (deep.filter_shape[0] - 1) * apart + 1
    most = max((size // (4 * x[2] * x[3]) - reach) // step + 1, 1)
    count = -(-(last - first) // most)
    for start, stop in pairwise(first + (last - first) * at // count for at in range(count + 1 if count > 0 else 0)):
        # padding is no row; a strip of nothing else has a row that is not looked at
        top = min(max(start * step - above, 0), x[1] - 1)
        yield Strip(image, start, stop, top, max(min((stop - 1) * step - above + reach, x[1]), top + 1))
