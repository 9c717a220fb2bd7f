"""The libraries on fake GPUs: what `reference` computes, as work of the fake driver's streams.

Strides and alignments that the real libraries would refuse are taken here, but for those of 8-bit floats; plans are
counted as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cuda.driver.base import Span, Stream
from toolkit.kernels.cuda.libraries import reference, reference_attention
from toolkit.kernels.cuda.libraries.attention import (
    Attention,
    AttentionGradient,
    check_attention,
    extent,
    library_takes,
    packed_strides,
)
from toolkit.kernels.cuda.libraries.base import (
    EIGHT_BITS,
    Convolution,
    LibraryError,
    Product,
    check_convolution,
    check_product,
    is_result,
)
from toolkit.kernels.cuda.simt.ir import FLOAT8_FROM
from toolkit.kernels.types import Array

_REAL = ("float32", "float64", "float16", "bfloat16")
#: an address, elements, their type
_Place = tuple[int, int, Any]
_COMPLEX = ("complex64", "complex128")


class FakeBlas:
    """Products on a fake GPU.

    Attributes:
        plans: configurations that were asked for.
    """

    version = "fake"

    def __init__(self, context: Any):
        self._context = context
        self.plans: set[Product] = set()

    def supports(self, product: Product) -> bool:
        self.plans.add(product)
        if product.dtype == EIGHT_BITS:
            return self._context.properties.capability >= FLOAT8_FROM and _takes_eight_bits(product)
        known = product.dtype in _REAL or (product.dtype in _COMPLEX and not product.epilogue)
        return known and is_result(product.dtype, product.made)

    def matmul(
        self,
        product: Product,
        a: Span,
        b: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        auxiliary: Span | None = None,
        added: Span | None = None,
        factors: tuple[Span, Span] | None = None,
    ) -> None:
        check_product(product, bias, auxiliary, factors)
        if not self.supports(product):
            raise LibraryError(f"cuBLASLt has no algorithm for {product}")
        p, dtype, result_type = product, reference.dtype_of(product.dtype), reference.dtype_of(product.result)
        kept_shape, kept_type = reference.auxiliary_shape(p)
        length = p.m if p.epilogue == "sums of a" else (p.batch - 1) * p.stride_bias + p.n
        spans = (a, b, out, bias, auxiliary, added, *(factors or ()))
        sizes = (*p.extents, length, int(np.prod(kept_shape)), p.extents[2], *(1 for _ in factors or ()))
        bias_type, single = reference.dtype_of(p.bias), reference.dtype_of("float32")
        types = (
            dtype, dtype, result_type, bias_type, kept_type, result_type, *(single for _ in factors or ()),
        )  # fmt: skip
        places = [_place(*each) for each in zip(spans, sizes, types, strict=True)]

        def run() -> None:
            arrays = [_array(self._context, place, "cublasLtMatmul") for place in places]
            left, right, result, vector, kept, before, *both = arrays
            if before is not None:
                result[...] = before[: result.size]
            reference.product(p, left, right, result, vector, kept, (both[0], both[1]) if both else None)

        self._context.submit("cublasLtMatmul", run, stream)


#: bytes at which rows of 8-bit floats begin, and of what cuBLASLt makes of them
_ALIGNED = 16
_EPILOGUES_OF_EIGHT_BITS = ("", "bias", "relu", "relu bias", "gelu", "gelu bias")


def _takes_eight_bits(product: Product) -> bool:
    """The manual's demands ("cublasLtMatmul", narrow precisions): the second operand transposed, rows aligned."""
    p = product
    if (p.turn_a, p.turn_b) != ("N", "T") or p.beta or p.epilogue not in _EPILOGUES_OF_EIGHT_BITS:
        return False
    width = reference.dtype_of(p.result).itemsize
    numbers = [p.k, p.n, *(number for _, _, lead, step in p.stored[:2] for number in (lead, step))]
    numbers += [number * width for number in p.stored[2][2:]]
    return is_result(p.dtype, p.made) and not any(number % _ALIGNED for number in numbers)


class FakeDnn:
    """Convolutions and attention on a fake GPU.

    Attributes:
        plans: configurations that were asked for.
    """

    version = "fake"

    def __init__(self, context: Any):
        self._context = context
        self.plans: set[Convolution | Attention | AttentionGradient] = set()

    def supports(self, convolution: Convolution) -> bool:
        """As cuDNN, float64 only without an epilogue."""
        self.plans.add(convolution)
        known = convolution.dtype in _REAL and not (convolution.dtype == "float64" and convolution.epilogue)
        return known and is_result(convolution.dtype, convolution.made)

    def convolve(
        self,
        convolution: Convolution,
        first: Span,
        second: Span,
        out: Span,
        stream: Stream,
        *,
        bias: Span | None = None,
        added: Span | None = None,
    ) -> None:
        check_convolution(convolution, bias, added)
        if not self.supports(convolution):
            raise LibraryError(f"cuDNN has no engine for {convolution}")
        c, dtype, made = convolution, reference.dtype_of(convolution.dtype), reference.dtype_of(convolution.result)
        x, w, y = c.x_shape, c.w_shape, c.y_shape
        shapes = {"forward": (x, w, y), "input": (w, y, x), "filter": (x, y, w)}[c.kind]
        every: Sequence[tuple[Span | None, tuple[int, ...], Any]] = [
            *zip((first, second, out), shapes, (dtype, dtype, made), strict=True), (bias, (c.filters,), made),
            (added, y, made),
        ]  # fmt: skip
        places = [(_place(span, int(np.prod(shape)), type), shape) for span, shape, type in every]

        def run() -> None:
            arrays = [_array(self._context, place, "cudnnBackendExecute") for place, _ in places]
            shaped = [a if a is None else a.reshape(shape) for a, (_, shape) in zip(arrays, places, strict=True)]
            reference.convolution(c, *shaped)

        self._context.submit("cudnnBackendExecute", run, stream)

    def attends(self, attention: Attention | AttentionGradient) -> bool:
        """As cuDNN by its documentation."""
        self.plans.add(attention)
        return library_takes(attention.forward if isinstance(attention, AttentionGradient) else attention)

    def attend(
        self,
        attention: Attention,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        stream: Stream,
        *,
        mask: Span | None = None,
        statistics: Span | None = None,
    ) -> None:
        a, dtype = attention, reference.dtype_of(attention.dtype)
        check_attention(a, mask, statistics)
        if not self.attends(a):
            raise LibraryError(f"cuDNN has no engine for {a}")
        views = [
            _view(q, a, "q", a.q, dtype), _view(k, a, "k", a.k, dtype), _view(v, a, "v", a.v, dtype),
            _view(out, a, "out", a.out, dtype), _view(mask, a, "scores", a.mask, _SUMS),
            _view(statistics, a, "scores", (*packed_strides((*a.sizes[:3], 1))[:3], 0), _SUMS),
        ]  # fmt: skip

        def run() -> None:
            reference_attention.attention(a, *(view.array(self._context) for view in views))

        self._context.submit("cudnnBackendExecute", run, stream)

    def attend_back(
        self,
        gradient: AttentionGradient,
        q: Span,
        k: Span,
        v: Span,
        out: Span,
        d_out: Span,
        statistics: Span,
        made: Sequence[Span],
        stream: Stream,
        *,
        mask: Span | None = None,
    ) -> None:
        g, a, dtype = gradient, gradient.forward, reference.dtype_of(gradient.forward.dtype)
        check_attention(a, mask, statistics)
        if not self.attends(g):
            raise LibraryError(f"cuDNN has no engine for {g}")
        dq, dk, dv = made
        views = [
            _view(q, a, "q", a.q, dtype), _view(k, a, "k", a.k, dtype), _view(v, a, "v", a.v, dtype),
            _view(out, a, "out", a.out, dtype), _view(d_out, a, "out", g.d_out, dtype),
            _view(statistics, a, "scores", (*packed_strides((*a.sizes[:3], 1))[:3], 0), _SUMS),
            _view(dq, a, "q", g.dq, dtype), _view(dk, a, "k", g.dk, dtype), _view(dv, a, "v", g.dv, dtype),
            _view(mask, a, "scores", a.mask, _SUMS),
        ]  # fmt: skip

        def run() -> None:
            reference_attention.gradient(g, *(view.array(self._context) for view in views))

        self._context.submit("cudnnBackendExecute", run, stream)


class _View(NamedTuple):
    """A tensor of four axes within a larger one; None where it is not there."""

    place: _Place | None
    shape: tuple[int, int, int, int]
    strides: tuple[int, ...]

    def array(self, context: Any) -> Array | Any:
        if self.place is None:
            return None
        flat = _array(context, self.place, "cudnnBackendExecute")
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)


_SUMS = np.dtype(np.float32)


def _view(span: Span | None, attention: Attention, part: str, strides: Any, dtype: Any) -> _View:
    """An operand of an attention; see `_place`."""
    shape = attention.sizes.shape(part)
    where = (0, 0, 0, 0) if strides is None else strides
    return _View(_place(span, extent(shape, where), dtype), shape, where)


def _place(span: Span | None, size: int, dtype: Any) -> _Place | None:
    """Where an operand is.

    Raises:
        LibraryError: it has not the size that it needs.
    """
    if span is None:
        return None
    if span.nbytes < size * dtype.itemsize:
        raise LibraryError(f"an operand of {size} numbers of {dtype} was given {span.nbytes} bytes")
    return span.address, size, dtype


def _array(context: Any, place: _Place | None, call: str) -> Array | Any:
    if place is None:
        return None
    address, size, dtype = place
    return context.bytes_at(address, size * dtype.itemsize, call).view(dtype)
