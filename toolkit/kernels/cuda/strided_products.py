"""Products whose matrices lie within larger tensors: any distance from row to row and from one to the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from toolkit.kernels.cuda.libraries.base import Blas, Product
from toolkit.kernels.cuda.libraries.precision import is_tf32_allowed
from toolkit.kernels.cuda.nn.products import launch_product
from toolkit.kernels.cuda.nn.strided_epilogue import launch_strided_epilogue
from toolkit.kernels.cuda.products import memory_from, with_epilogue

#: by context's library: what it is asked for, by the product, whether there is a bias, the activation, and whether
#: TF32 is allowed; None where it has no plan
_known: WeakKeyDictionary[Any, dict[tuple[Product, bool, str, bool], Product | None]] = WeakKeyDictionary()
_MOST_KNOWN = 4096  # shapes change without end in few programs


def multiply_strided(
    device: Any,
    product: Product,
    a: Any,
    b: Any,
    out: Any,
    *,
    bias: Any = None,
    name: str = "Identity",
    firsts: tuple[int, int, int] = (0, 0, 0),
) -> None:
    """out = activation(op(a) @ op(b) + bias) for each of a batch, put into the device's compute stream.

    Args:
        product: sizes, strides and types, without an epilogue.
        bias: n numbers of the result's type for each product, `product.stride_bias` apart.
        name: of an activation, in TensorFlow's `fused_ops`; nothing is put behind products that begin later.
        firsts: elements before the first matrix of a, b and the result.
    """
    blas = device.context.blas
    asked = None if blas is None else _asked(blas, product, bias is not None, name)
    stored = product.stored
    if blas is None or asked is None:
        launch_product(
            device, (a, b, out), (product.m, product.n, product.k), (product.turn_a, product.turn_b),
            firsts=firsts, batch=product.batch, strides=(product.stride_a, product.stride_b, product.stride_out),
            leads=(stored[0][2], stored[1][2], stored[2][2]),
        )  # fmt: skip
    else:
        spans = [memory_from(array, first) for array, first in zip((a, b, out), firsts, strict=True)]
        blas.matmul(asked, *spans, device.compute, bias=bias if asked.epilogue else None)
        if asked.epilogue:
            return
    if bias is not None or name != "Identity":
        launch_strided_epilogue(
            device, out, product.batch, (product.m, product.n), (product.stride_out, stored[2][2]), bias=bias,
            bias_stride=product.stride_bias, name=name,
        )  # fmt: skip


def _asked(blas: Blas, product: Product, has_bias: bool, name: str) -> Product | None:
    """What the library is asked for: with the epilogue if it can; None if it has no plan."""
    known, key = _known.setdefault(blas, {}), (product, has_bias, name, is_tf32_allowed())
    try:
        return known[key]
    except KeyError:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        base = replace(product, tf32=is_tf32_allowed())
        fused = with_epilogue(base, has_bias, False, name)
        found = fused if fused is not None and blas.supports(fused) else base if blas.supports(base) else None
        known[key] = found
        return found
