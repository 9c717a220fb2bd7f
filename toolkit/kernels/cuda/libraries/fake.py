"""The libraries on fake GPUs: what `reference` computes, as work of the fake driver's streams.

Strides and alignments that the real libraries would refuse are taken here, but for those of 8-bit floats; plans are
counted as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cuda.driver.base import Span, Stream
from toolkit.kernels.cuda.libraries import reference
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
    """Convolutions on a fake GPU.

    Attributes:
        plans: configurations that were asked for.
    """

    version = "fake"

    def __init__(self, context: Any):
        self._context = context
        self.plans: set[Convolution] = set()

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


#: an address, elements, their type
_Place = tuple[int, int, Any]


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
