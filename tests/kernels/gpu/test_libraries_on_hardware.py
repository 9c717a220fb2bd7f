"""cuBLASLt and cuDNN themselves beside their definitions in NumPy; the fake ones, which are those, in every run."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.gpu.driver import require_hardware
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.libraries import reference
from toolkit.kernels.cuda.libraries.base import (
    ACTIVATIONS,
    EIGHT_BITS,
    EPILOGUES,
    SIXTEEN_BITS,
    Convolution,
    Product,
)

_REAL = ("float32", "float64", "float16", "bfloat16")
_TURNS = [("N", "N"), ("T", "N"), ("N", "T"), ("C", "C")]
#: of 128 columns, for relu's bits are kept in rows of so many
PRODUCTS = [
    *(Product(48, 128, 40, dtype, *turns) for dtype in (*_REAL, "complex64", "complex128") for turns in _TURNS),
    *(Product(48, 128, 40, "float32", batch=3, stride_a=0, stride_b=5120, stride_out=6144) for _ in range(1)),
    *(Product(48, 128, 40, dtype, epilogue=name) for dtype in ("float32", "float16") for name in EPILOGUES),
    *(Product(48, 128, 40, dtype, *turns, made="float32") for dtype in SIXTEEN_BITS for turns in _TURNS[:3]),
    *(Product(48, 128, 40, "bfloat16", epilogue=name) for name in ("bias", "relu bias", "gelu bias")),
    *(Product(48, 128, 40, dtype, epilogue="bias", made="float32") for dtype in SIXTEEN_BITS),
    *(
        Product(rows, 128, 48, EIGHT_BITS, "N", "T", made=made, epilogue=name)
        for rows in (48, 5)
        for made in ("float32", "bfloat16")
        for name in ("", "bias", "relu bias", "gelu bias")
    ),
    Product(48, 64, 32, EIGHT_BITS, "N", "T", 3, 0, 2048, 64, made="bfloat16", lead_out=192),
    # the heads of attention: columns of one matrix as a batch, each with its part of the bias; rows that lie apart
    *(
        Product(48, 64, 40, dtype, batch=3, stride_b=64, stride_out=3072, lead_b=192, stride_bias=64, epilogue="bias")
        for dtype in ("float32", *SIXTEEN_BITS)
    ),
    *(
        Product(48, 32, 64, dtype, "N", "T", 3, 64, 64, 1536, lead_a=192, lead_b=192, made=made)
        for dtype, made in (("float32", ""), ("bfloat16", "float32"), ("float16", ""))
    ),
    *(Product(48, 64, 32, dtype, "N", "N", 3, 1536, 64, 64, lead_b=192, lead_out=192) for dtype in _REAL),
]
_SHAPES: list[dict[str, Any]] = [
    {"sizes": (15, 14), "kernel": (3, 3), "strides": (2, 1), "dilations": (1, 1), "pads": ((0, 1), (1, 1))},
    {"sizes": (9, 9), "kernel": (3, 2), "strides": (1, 1), "dilations": (2, 1), "pads": ((2, 2), (0, 1))},
    {"sizes": (6, 7, 8), "kernel": (2, 3, 3), "strides": (1, 2, 1), "dilations": (1, 1, 1), "pads": ((0, 1),) * 3},
]


def _convolution(kind: str, dtype: str, shape: dict[str, Any], **more: Any) -> Convolution:
    out = tuple(
        (size + before + after - (window - 1) * dilation - 1) // stride + 1
        for size, window, stride, dilation, (before, after) in zip(*shape.values(), strict=True)
    )
    return Convolution(kind, dtype, 4, 16, 32, more.pop("groups", 1), out=out, **shape, **more)


CONVOLUTIONS = [
    *(
        _convolution(kind, dtype, shape, channels_first=first, groups=groups)
        for kind in ("forward", "input", "filter")
        for dtype in _REAL
        for shape in _SHAPES
        for first in (False, True)
        for groups in (1, 4)
    ),
    *(
        _convolution("forward", dtype, _SHAPES[0], epilogue=epilogue)
        for dtype in ("float32", "float16")
        for epilogue in [("bias",), ("add",), ("bias", "add", "relu"), *(("bias", name) for name in ACTIVATIONS)]
    ),
    *(_convolution("forward", "bfloat16", _SHAPES[0], epilogue=each) for each in [("bias",), ("bias", "add", "relu")]),
]
#: of 16-bit operands as float32: what the library has no engine for is widened behind it
WIDE_CONVOLUTIONS = [
    _convolution(kind, dtype, shape, channels_first=first, made="float32")
    for kind in ("forward", "input", "filter")
    for dtype in SIXTEEN_BITS
    for shape in _SHAPES[:2]
    for first in (False, True)
]


def _given(rng: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    made = rng.normal(size=shape)
    return (made + 1j * rng.normal(size=shape) if dtype.kind == "c" else made).astype(dtype)


def _compare(found: Any, wanted: Any, size: Any, terms: int, dtype: Any) -> None:
    """Both are sums of so many products, rounded to a type; `size` is what the products come to without signs."""
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    sums = tolerance.likely(2 * terms + 8, reference.wide(real))
    near = 2 * (sums + 2 * tolerance.unit(real)) * (size + 1)
    difference = np.abs(np.asarray(found).astype(np.complex128) - np.asarray(wanted).astype(np.complex128))
    assert np.all(difference <= near), f"{np.max(difference / near)} times what is allowed"


def _run_product(gpu: CudaDevice, p: Product) -> bool:
    """Compare; whether the library has it."""
    blas: Any = gpu.context.blas
    if not blas.supports(p):
        return False
    rng, dtype, kind = np.random.default_rng(1), reference.dtype_of(p.dtype), EPILOGUES[p.epilogue]
    made = reference.dtype_of(p.result)
    a, b, wanted = (
        _given(rng, (p.extents[0],), dtype),
        _given(rng, (p.extents[1],), dtype),
        np.zeros(p.extents[2], made),
    )
    length = p.m if p.epilogue == "sums of a" else (p.batch - 1) * p.stride_bias + p.n
    bias = _given(rng, (length,), reference.dtype_of(p.bias)) if kind.bias else None
    factors = [np.array([each], np.float32) for each in (0.25, 2.0)] if p.dtype == EIGHT_BITS else []
    shape, kept_type = reference.auxiliary_shape(p)
    kept = None
    if kind.auxiliary:
        kept = np.zeros(shape, kept_type)
        if kind.auxiliary == "read":
            kept = rng.integers(0, 256, shape).astype(kept_type) if "relu" in p.epilogue else _given(rng, shape, dtype)
    on_gpu = [None if each is None else gpu.to_device(each) for each in (a, b, wanted, bias, kept)]
    both = tuple(map(gpu.to_device, factors)) or None
    blas.matmul(p, *on_gpu[:3], gpu.compute, bias=on_gpu[3], auxiliary=on_gpu[4], factors=both)
    flat = None if kept is None else kept.reshape(-1)
    reference.product(p, a, b, wanted, bias, flat, (factors[0], factors[1]) if factors else None)
    plain = dataclasses.replace(p, dtype="float64", made="", epilogue="")
    size = np.zeros(wanted.shape)
    reference.product(plain, np.abs(a).astype(np.float64), np.abs(b).astype(np.float64), size, None, None)
    size = np.maximum(size, 1) * 4  # the slope of gelu is at most 1.13; a bias of at most 4 is added
    # of products of 8 bits Hopper's tensor cores keep 14 of float32's 24 bits until they hand a sum on ("DeepSeek-V3
    # Technical Report", 2024, section 3.5.2)
    lost = 2.0**10 if factors and blas.version != "fake" else 1.0
    _compare(gpu.to_host(on_gpu[2]), wanted, size * lost, p.k, made)
    if kind.bias == "written":
        _compare(gpu.to_host(on_gpu[3]), bias, size.sum(), p.m + p.k, dtype)
    if kind.auxiliary == "written" and "gelu" in p.epilogue:
        _compare(gpu.to_host(on_gpu[4]).reshape(-1), flat, size, p.k, dtype)
    return True


def _run_convolution(gpu: CudaDevice, c: Convolution) -> bool:
    dnn: Any = gpu.context.dnn
    if not dnn.supports(c):
        return False
    rng, dtype, made = np.random.default_rng(2), reference.dtype_of(c.dtype), reference.dtype_of(c.result)
    x, w, y = c.x_shape, c.w_shape, c.y_shape
    first, second, out = {"forward": (x, w, y), "input": (w, y, x), "filter": (x, y, w)}[c.kind]
    operands = [_given(rng, first, dtype), _given(rng, second, dtype)]
    wanted = np.zeros(out, made)
    bias = _given(rng, (c.filters,), made) if "bias" in c.epilogue else None
    added = _given(rng, y, made) if "add" in c.epilogue else None
    on_gpu = [None if each is None else gpu.to_device(each) for each in (*operands, wanted, bias, added)]
    dnn.convolve(c, *on_gpu[:3], gpu.compute, bias=on_gpu[3], added=on_gpu[4])
    reference.convolution(c, operands[0], operands[1], wanted, bias, added)
    plain = Convolution(**{**{n: getattr(c, n) for n in Convolution.__dataclass_fields__}, "epilogue": ()})
    size = np.zeros(out)
    reference.convolution(plain, *(np.abs(each).astype(np.float64) for each in operands), size, None, None)
    terms = {"forward": w[1:], "input": (c.filters, *c.kernel), "filter": (4, *c.out)}
    _compare(gpu.to_host(on_gpu[2]), wanted, size * 4 + 8, int(np.prod(terms[c.kind])), made)
    return True


def _label(value: Any) -> str:
    dtype = f"{value.dtype}{value.made and f'-{value.made}'}"
    if isinstance(value, Product):
        return f"{dtype}-{value.turn_a}{value.turn_b}-{value.batch}-{value.epilogue}"
    layout = "first" if value.channels_first else "last"
    return f"{value.kind}-{dtype}-{len(value.sizes)}d-{value.dilations}-{layout}-{value.groups}-{value.epilogue}"


@pytest.mark.parametrize("product", PRODUCTS, ids=_label)
def test_products_of_the_fake_library(product: Product) -> None:
    assert _run_product(device(0), product) or product.dtype.startswith("complex")


@pytest.mark.gpu
@pytest.mark.parametrize("product", PRODUCTS, ids=_label)
def test_products_on_hardware(product: Product) -> None:
    """What cuBLASLt has no algorithm for has a kernel of ours; products without an epilogue it has."""
    require_hardware()
    assert _run_product(device(0), product) or product.epilogue or product.dtype.startswith("complex")


@pytest.mark.parametrize("convolution", [*CONVOLUTIONS[::7], *WIDE_CONVOLUTIONS], ids=_label)
def test_convolutions_of_the_fake_library(convolution: Convolution) -> None:
    assert _run_convolution(device(0), convolution)


@pytest.mark.gpu
@pytest.mark.parametrize("convolution", CONVOLUTIONS, ids=_label)
def test_convolutions_on_hardware(convolution: Convolution) -> None:
    """What cuDNN has no engine for has kernels of ours; two axes without an epilogue it has."""
    require_hardware()
    assert _run_convolution(device(0), convolution) or convolution.epilogue or len(convolution.sizes) == 3


@pytest.mark.gpu
@pytest.mark.parametrize("convolution", WIDE_CONVOLUTIONS, ids=_label)
def test_16_bits_as_float32_on_hardware(convolution: Convolution) -> None:
    """Either the library has an engine, and it is right, or it has one that gives 16 bits."""
    require_hardware()
    gpu = device(0)
    dnn: Any = gpu.context.dnn
    assert _run_convolution(gpu, convolution) or dnn.supports(dataclasses.replace(convolution, made=""))
