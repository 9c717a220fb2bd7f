"""Matrix products of 8-bit floats: e4m3 with a factor for each tensor, multiplied by cuBLASLt and added in float32.

The library takes the first factor as it lies and the second one transposed ([n, k], "TN" in its own order), rows that
begin at multiples of 16 bytes, and the tensors' factors from the device's memory.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from toolkit.kernels.cuda.libraries.base import Blas, Product
from toolkit.kernels.cuda.nn.float8 import launch_quantize
from toolkit.kernels.cuda.nn.strided_epilogue import launch_strided_epilogue
from toolkit.kernels.cuda.nn.transposes import transposed
from toolkit.kernels.cuda.products import with_epilogue
from toolkit.kernels.tensors import F8, F32

#: by context's library: what it is asked for, by the product, whether there is a bias, and the activation
_known: WeakKeyDictionary[Any, dict[tuple[Product, bool, str], Product]] = WeakKeyDictionary()
_MOST_KNOWN = 4096  # shapes change without end in few programs


def quantized(device: Any, x: Any, *, turned: bool, maxima: Any = None) -> tuple[Any, Any]:
    """A tensor as e4m3, and its factor, float32 [1].

    Args:
        turned: its last two axes are exchanged.
        maxima: float32, of which the largest is that of x; None where they are not known.
    """
    if turned:
        *lead, rows, columns = x.shape
        batch = 1
        for size in lead:
            batch *= size
        x = transposed(device, x, batch, rows, columns, (*lead, columns, rows))
    made, factor = device.empty(x.shape, F8), device.empty((1,), F32)
    launch_quantize(device, x, made, factor, maxima)
    return made, factor


def multiply_float8(
    device: Any, product: Product, a: Any, b: Any, factors: tuple[Any, Any], out: Any, *, bias: Any = None,
    name: str = "Identity",
) -> None:  # fmt: skip
    """out = activation(a @ b^T * factors + bias) for each of a batch, put into the device's compute stream.

    Args:
        product: of e4m3, without an epilogue; the library has a plan for it.
        factors: of a and b, float32 [1] each.
        bias: bfloat16, n numbers for each product, `product.stride_bias` apart.
        name: of an activation, in TensorFlow's `fused_ops`.
    """
    blas = device.context.blas
    asked = _asked(blas, product, bias is not None, name)
    blas.matmul(asked, a, b, out, device.compute, bias=bias if asked.epilogue else None, factors=factors)
    if not asked.epilogue and (bias is not None or name != "Identity"):
        launch_strided_epilogue(
            device, out, product.batch, (product.m, product.n), (product.stride_out, product.stored[2][2]), bias=bias,
            bias_stride=product.stride_bias, name=name,
        )  # fmt: skip


def _asked(blas: Blas, product: Product, has_bias: bool, name: str) -> Product:
    """What the library is asked for: with the epilogue if it can."""
    known, key = _known.setdefault(blas, {}), (product, has_bias, name)
    found = known.get(key)
    if found is None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        fused = with_epilogue(product, has_bias, False, name)
        found = known[key] = fused if fused is not None and blas.supports(fused) else product
    return found
