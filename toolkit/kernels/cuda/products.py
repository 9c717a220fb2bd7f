"""Matrix products on a GPU: by cuBLASLt where it is and has a plan, else by a kernel of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from toolkit.kernels.cuda.driver.base import GpuSpan
from toolkit.kernels.cuda.libraries.base import Blas, Product
from toolkit.kernels.cuda.libraries.precision import is_tf32_allowed
from toolkit.kernels.cuda.nn.channels import launch_epilogue
from toolkit.kernels.cuda.nn.products import launch_product

#: names of TensorFlow's activations in the library's epilogues
_EPILOGUES = {"Identity": "", "Relu": "relu", "GeluApproximate": "gelu"}


@dataclass(frozen=True, slots=True)
class Batch:
    """Products whose matrices lie at equal distances.

    Attributes:
        firsts: matrices before the first one, of a, b and the result.
        count: how many products.
        steps: matrices from one to the next, of a, b and the result; 0 for the same one.
    """

    firsts: tuple[int, int, int]
    count: int
    steps: tuple[int, int, int]


def batches(lead_a: Sequence[int], lead_b: Sequence[int]) -> tuple[tuple[int, ...], list[Batch]]:
    """The shape of the batch of two operands' leading axes, which broadcast, and its products in few batches."""
    rank = max(len(lead_a), len(lead_b))
    a = (*[1] * (rank - len(lead_a)), *lead_a)
    b = (*[1] * (rank - len(lead_b)), *lead_b)
    shape = np.broadcast_shapes(a, b)
    steps = [_steps(lead) for lead in (a, b)]
    # the last axes along which each operand either goes on or stays where it is are one batch
    inner, kinds = rank, [-1, -1]
    while inner:
        axis = inner - 1
        now = [kinds[i] if shape[axis] == 1 else int(lead[axis] > 1) for i, lead in enumerate((a, b))]
        if any(before not in (-1, after) for before, after in zip(kinds, now, strict=True)):
            break
        kinds, inner = now, axis
    count = math.prod(shape[inner:])
    moving = (max(kinds[0], 0), max(kinds[1], 0), 1)
    found: list[Batch] = []
    for number, index in enumerate(np.ndindex(*shape[:inner])):
        starts = [
            sum(i * step for i, step, size in zip(index, each, lead, strict=False) if size > 1)
            for each, lead in zip(steps, (a, b), strict=True)
        ]
        found.append(Batch((starts[0], starts[1], number * count), count, moving))
    return shape, found


def _steps(lead: Sequence[int]) -> list[int]:
    """Matrices from one place of an axis to the next."""
    steps, step = [0] * len(lead), 1
    for axis in reversed(range(len(lead))):
        steps[axis] = step
        step *= lead[axis]
    return steps


def multiply(
    device: Any,
    a: Any,
    b: Any,
    out: Any,
    sizes: tuple[int, int, int],
    turns: tuple[str, str] = ("N", "N"),
    *,
    batch: Batch | None = None,
    bias: Any = None,
    added: Any = None,
    name: str = "Identity",
) -> None:
    """out = activation(op(a) @ op(b) + bias + added), put into the device's compute stream.

    Args:
        out: of the factors' type; or float32, which products of 16-bit floats are added in.
        sizes: m, n, k, of which none is 0.
        turns: "N", "T" or "C" of a and b.
        batch: several products; by default one.
        bias: a vector of n numbers of the result's type.
        added: of the result's shape and type, beside a single product.
        name: of an activation, in TensorFlow's `fused_ops`.
    """
    m, n, k = sizes
    of = batch or _ONE
    first_a, first_b, first_out = of.firsts[0] * m * k, of.firsts[1] * k * n, of.firsts[2] * m * n
    blas = device.context.blas
    if blas is not None:
        known = _known.setdefault(blas, {})
        key = (
            a.dtype,
            out.dtype,
            sizes,
            turns,
            of.count,
            of.steps,
            bias is not None,
            added is not None,
            name,
            is_tf32_allowed(),
        )
        try:
            product = known[key]
        except KeyError:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            product = known[key] = _planned(
                blas, (a.dtype.name, out.dtype.name), sizes, turns, of, bias is not None, added is not None, name
            )  # fmt: skip
        if product is not None:
            fused = bool(product.epilogue or product.beta)
            blas.matmul(
                product, memory_from(a, first_a), memory_from(b, first_b), memory_from(out, first_out), device.compute,
                bias=bias if fused else None, added=added if fused else None,
            )  # fmt: skip
            if not fused:
                _finish(device, out, n, bias, added, name)
            return
    strides = (of.steps[0] * m * k, of.steps[1] * k * n, of.steps[2] * m * n)
    firsts = (first_a, first_b, first_out)
    launch_product(device, (a, b, out), sizes, turns, batch=of.count, firsts=firsts, strides=strides)
    _finish(device, out, n, bias, added, name)


_ONE = Batch((0, 0, 0), 1, (0, 0, 0))
#: what each context's library is asked for, by what `multiply` is; None where it has no plan
_known: WeakKeyDictionary[Any, dict[tuple[Any, ...], Product | None]] = WeakKeyDictionary()
_MOST_KNOWN = 4096  # shapes change without end in few programs


def _planned(
    blas: Blas, types: tuple[str, str], sizes: tuple[int, int, int], turns: tuple[str, str], of: Batch, has_bias: bool,
    adds: bool, name: str,
) -> Product | None:  # fmt: skip
    """The product as the library computes it, with its epilogue if it can; None if it has no plan.

    Args:
        types: of the factors, and of the result.
    """
    dtype, made = types
    m, n, k = sizes
    steps = of.steps if of.count > 1 else (0, 0, 0)
    base = Product(
        m, n, k, dtype, turns[0], turns[1], of.count, steps[0] * m * k, steps[1] * k * n, steps[2] * m * n,
        tf32=is_tf32_allowed(), made="" if made == dtype else made,
    )  # fmt: skip
    fused = with_epilogue(base, has_bias, adds, name)
    if fused is not None and blas.supports(fused):
        return fused
    return base if blas.supports(base) else None


def with_epilogue(base: Product, has_bias: bool, adds: bool, name: str) -> Product | None:
    """The product with its epilogue, if the library has it."""
    activation = _EPILOGUES.get(name)
    if activation is None or not (has_bias or adds or activation):
        return None
    if activation == "gelu" and base.dtype == "float32" and not base.tf32:
        return None  # the library's tanh is some units in the last place further off than ours: 2.8e-6 was measured
    epilogue = " ".join(filter(None, (activation, "bias" if has_bias else "")))
    return replace(base, epilogue=epilogue, beta=1.0 if adds else 0.0)


def _finish(device: Any, out: Any, n: int, bias: Any, added: Any, name: str) -> None:
    """What follows a product, in its place."""
    if bias is not None or added is not None or name != "Identity":
        launch_epilogue(device, out, out, n, 1, vectors=() if bias is None else (bias,), added=added, name=name)


def memory_from(array: Any, first: int) -> Any:
    """The memory of an array from an element on."""
    if not first:
        return array
    offset = first * array.dtype.itemsize
    return GpuSpan(array.address + offset, array.nbytes - offset)
