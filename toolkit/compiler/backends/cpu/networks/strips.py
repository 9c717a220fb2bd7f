"""A 1x1 convolution and the depthwise one behind it, strip by strip: what is in between never leaves the cache.

MobileNet and its kin widen an image sixfold, convolve each channel and narrow it again; the wide tensors are the
largest of the network, and writing and reading them takes longer than computing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Nested, Region, Workspace
from toolkit.compiler.backends.cpu.networks.depthwise import Depthwise
from toolkit.compiler.backends.cpu.networks.panels import Product, Work, choose, is_product
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation, Untyped
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.shares import calls
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32

_LEAST = 3 << 19  # bytes of what is in between: less stays in the cache by itself
_STRIP = 3 << 18  # bytes of a strip: it is in the second cache, beside inputs and outputs


class _Strip(NamedTuple):
    """Rows of an output, and the rows of what is in between that they need."""

    image: int
    first: int
    last: int
    top: int
    bottom: int


def join_strips(block: Block) -> None:
    """Make one "strips" of a "conv" or "panels" and the "depthwise" that alone takes its output; attrs wide, deep."""
    joined = {deep: Untyped("strips", [], [], [*wide.steps, *deep.steps], wide=wide, deep=deep)
              for deep in block.operations if (wide := _widened(deep)) is not None}  # fmt: skip
    if not joined:
        return
    block.weave({}, {deep: [operation] for deep, operation in joined.items()})
    given = {operation: list(operation.attrs["wide"].inputs) for operation in joined.values()}
    between = {deep: deep.inputs[0] for deep in joined}
    block.remove({*joined, *(operation.attrs["wide"] for operation in given)})
    for deep, operation in joined.items():
        assert isinstance(deep, Untyped)
        deep.remember([between[deep]])  # for its shape: it is in no block any more
        operation.set_inputs(given[operation])
        operation.outputs = deep.outputs
        operation.output.producer = operation
        operation.guard = deep.guard


def _widened(deep: Operation) -> Operation | None:
    """The convolution whose output a depthwise one takes, if both are better computed together."""
    if deep.kind != "depthwise" or len(deep.inputs) > 1 or deep.inputs[0].dtype != F32:
        return None
    between = deep.inputs[0]
    wide = between.producer
    if wide is None or wide.kind not in ("conv", "panels") or wide.guard != deep.guard or len(wide.inputs) > 1:
        return None
    return wide if between.nbytes >= _LEAST and between.sole_user is deep and is_product(wide) else None


def write_strips(emitter: Emitter, operation: Operation) -> None:
    """The call of a compiled function that calls one convolution and then the other for each strip."""
    wide, deep = operation.attrs["wide"], operation.attrs["deep"]
    x, between, y = operation.inputs[0], wide.output, operation.output
    assert x.shape is not None and between.shape is not None and y.shape is not None
    _, height, width, channels = between.shape
    line, down = 4 * width * channels, y.shape[1]
    shares = _shares(deep, y.shape[0], deep.attrs["threads"])
    heights = sorted({strip.bottom - strip.top for share in shares for strip in share})
    split = choose(Work(heights[-1] * width, x.shape[-1], channels), [rows * width for rows in heights])
    widening = Product(emitter, wide, split, threads=False)
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
                x, base, [(top * width, bottom * width, 0, split.panels)], start + heights[-1] * line, before
            )
            rows = convolution.operands(base, y, [(first, last, 0, channels // LANES)], (top, bottom), before)
            nested += [widening.function.address, Nested(product), convolution.function.address, Nested(rows)]
    emitter.keep += [widening.function, convolution.function]
    spread = len(shares) > 1
    machine = compiler()
    assert machine is not None
    function = machine.function(calls(threads=spread), openmp_symbols(*OPENMP) if spread else {})
    emitter.execute_native(function, [*counts, *nested])
    for each in (wide, deep):
        del each.attrs["filter"]  # packed by now


def _shares(deep: Operation, images: int, threads: int) -> list[list[_Strip]]:
    """The strips of each thread, which lie one below the other."""
    down = deep.output.shape[1] if deep.output.shape else 0
    shares: list[list[_Strip]] = []
    for index in range(threads):
        first, last = (images * down * at // threads for at in (index, index + 1))
        share: list[_Strip] = []
        for image in range(images):
            share += _strips(deep, image, max(first - image * down, 0), min(last - image * down, down))
        if share:
            shares.append(share)
    return shares


def _strips(deep: Operation, image: int, first: int, last: int) -> Iterator[_Strip]:
    """The rows from `first` to `last` of an image's output, in strips of about the same height."""
    attrs, x = deep.attrs, deep.inputs[0].shape
    assert x is not None
    step, apart, above = attrs["strides"][0], attrs["dilations"][0], attrs["pads"][0][0]
    reach = (attrs["filter"].shape[0] - 1) * apart + 1
    most = max((_STRIP // (4 * x[2] * x[3]) - reach) // step + 1, 1)
    count = -(-(last - first) // most)
    for start, stop in pairwise(first + (last - first) * at // count for at in range(count + 1 if count > 0 else 0)):
        # padding is no row; a strip of nothing else has a row that is not looked at
        top = min(max(start * step - above, 0), x[1] - 1)
        yield _Strip(image, start, stop, top, max(min((stop - 1) * step - above + reach, x[1]), top + 1))
