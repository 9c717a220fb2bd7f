"""cuDNN's attention beside its definition in NumPy; the fake library's, which is that, in every run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.gpu.driver import require_hardware
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.libraries import reference
from toolkit.kernels.cuda.libraries.attention import (
    Attention,
    AttentionGradient,
    AttentionSizes,
    extent,
    packed_strides,
)
from toolkit.kernels.gpu.nn.attention import attend, attend_back

_MASKS = {"": None, "keys": (1, 0, 0, 1), "rows": (1, 0, 1, 1), "all": (1, 1, 1, 1)}
#: sizes with and without a tile left over; heads within tokens, or before them
CASES = [
    (AttentionSizes(*sizes), order, mask, causal)
    for sizes, order in [
        ((2, 3, 128, 128, 64, 64), "tokens"), ((1, 4, 77, 93, 64, 64), "tokens"), ((3, 2, 64, 40, 128, 128), "heads"),
        ((2, 2, 33, 33, 8, 16), "heads"),
    ]
    for mask, causal in [("", False), ("keys", False), ("rows", False), ("all", False), ("", True)]
]  # fmt: skip


def _strides(shape: tuple[int, int, int, int], order: str) -> tuple[int, int, int, int]:
    _, heads, rows, columns = shape
    return (rows * heads * columns, columns, heads * columns, 1) if order == "tokens" else packed_strides(shape)


def _attention(sizes: AttentionSizes, order: str, mask: str, causal: bool, dtype: str) -> Attention:
    q, k, v, out = (_strides(sizes.shape(part), order) for part in ("q", "k", "v", "out"))
    along, there = _MASKS[mask], None
    if along is not None:
        shape = [size if moves else 1 for size, moves in zip(sizes.shape("scores"), along, strict=True)]
        steps = [math.prod(shape[at + 1 :]) if moves else 0 for at, moves in enumerate(along)]
        there = (steps[0], steps[1], steps[2], steps[3])
    return Attention(sizes, dtype, sizes.size**-0.5, q, k, v, out, there, causal, True)


def _seen(flat: Any, shape: tuple[int, ...], strides: Any) -> Any:
    """Elements in the order of the shape, in float64."""
    steps = [stride * flat.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(flat, shape, steps).astype(np.float64)


def _run(gpu: CudaDevice, a: Attention) -> None:
    """An attention and its gradients beside float64.

    Shares and gradients by scores are rounded to 16 bits, and so are results: u of what sums come to without signs for
    each, and 4 times that for the order of sums and two engines.
    """
    rng, dtype, sizes = np.random.default_rng(3), reference.dtype_of(a.dtype), a.sizes
    places = {"q": a.q, "k": a.k, "v": a.v, "out": a.out}
    host = {part: rng.normal(size=extent(sizes.shape(part), at)).astype(dtype) for part, at in places.items()}
    mask = None
    if a.mask is not None:
        mask = rng.normal(size=extent(sizes.shape("scores"), a.mask)).astype(np.float32)
        mask[rng.random(mask.shape) < 0.25] = -1e9
    given = {part: gpu.to_device(each) for part, each in host.items()}
    on_gpu = None if mask is None else gpu.to_device(mask)
    out = gpu.empty(host["out"].shape, dtype)
    statistics = gpu.empty(sizes[:3], np.dtype(np.float32))
    attend(gpu, a, given["q"], given["k"], given["v"], out, mask=on_gpu, statistics=statistics)
    made = tuple(gpu.empty(host[part].shape, dtype) for part in ("q", "k", "v"))
    gradient = AttentionGradient(a, a.out, a.q, a.k, a.v)
    attend_back(
        gpu, gradient, given["q"], given["k"], given["v"], out, given["out"], statistics, (made[0], made[1], made[2]),
        mask=on_gpu,
    )  # fmt: skip
    q, k, v, d_out = (_seen(host[part], sizes.shape(part), at) for part, at in places.items())
    scores = a.scale * q @ np.swapaxes(k, 2, 3)
    scores = scores if mask is None else scores + _seen(mask, sizes.shape("scores"), a.mask)
    scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf) if a.causal else scores
    largest = scores.max(-1, keepdims=True)
    total = np.exp(scores - largest).sum(-1, keepdims=True)
    shares, u = np.exp(scores - largest) / total, tolerance.unit(dtype)
    wanted, size = shares @ v, shares @ np.abs(v)
    _compare(gpu, out, sizes.shape("out"), a.out, wanted, 4 * u * size)
    found = gpu.to_host(statistics).astype(np.float64)
    # scores are sums of products in float32, and so are those of exponentials; -1e9 has 8 digits there
    score = a.scale * np.abs(q) @ np.swapaxes(np.abs(k), 2, 3)
    near = 2 * tolerance.likely(2 * sizes.size + 8, np.dtype(np.float32)) * (score.max() + np.abs(largest) + 1)
    assert np.all(np.abs(found - (np.log(total) + largest)[..., 0]) <= near[..., 0])
    d_shares, d_size = d_out @ np.swapaxes(v, 2, 3), np.abs(d_out) @ np.swapaxes(np.abs(v), 2, 3)
    d_scores = shares * (d_shares - (d_shares * shares).sum(-1, keepdims=True))
    off = 4 * u * shares * (d_size + (np.abs(d_out) * size).sum(-1, keepdims=True))
    results = [
        ("q", a.scale * d_scores @ k, a.scale * off @ np.abs(k)),
        ("k", a.scale * np.swapaxes(d_scores, 2, 3) @ q, a.scale * np.swapaxes(off, 2, 3) @ np.abs(q)),
        ("v", np.swapaxes(shares, 2, 3) @ d_out, 4 * u * np.swapaxes(shares, 2, 3) @ np.abs(d_out)),
    ]
    for array, (part, expected, apart) in zip(made, results, strict=True):
        _compare(gpu, array, sizes.shape(part), places[part], expected, apart + 4 * u * np.abs(expected))


def _compare(gpu: CudaDevice, array: Any, shape: tuple[int, ...], strides: Any, wanted: Any, near: Any) -> None:
    found = _seen(gpu.to_host(array), shape, strides)
    # numbers below the least that float16 has all digits of
    least = 2.0**-14
    assert np.all(np.abs(found - wanted) <= near + least), np.max(np.abs(found - wanted) / (near + least))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_fake_library(case: tuple[AttentionSizes, str, str, bool], dtype: str) -> None:
    gpu = device(0)
    dnn: Any = gpu.context.dnn
    a = _attention(*case, dtype)
    _run(gpu, a)
    assert any(isinstance(of, Attention) and of.sizes == a.sizes and of.dtype == dtype for of in dnn.plans)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_on_hardware(case: tuple[AttentionSizes, str, str, bool], dtype: str) -> None:
    """Where cuDNN has no engine the parts are run, which give the same; which it has, `attends` says."""
    require_hardware()
    _run(device(0), _attention(*case, dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_library_has_engines(dtype: str) -> None:
    """Of heads of 64 numbers without a mask, forward and backward, on any card from sm_80 on."""
    require_hardware()
    dnn: Any = device(0).context.dnn
    a = _attention(*CASES[0], dtype)
    assert dnn.attends(a) and dnn.attends(AttentionGradient(a, a.out, a.q, a.k, a.v))
    assert dnn.attends(replace(a, statistics=False))


@pytest.mark.gpu
@pytest.mark.parametrize("lost", [-1e9, -math.inf])
def test_rows_that_see_nothing_on_hardware(lost: float) -> None:
    """Equal shares of all keys where the mask is -1e9, NaN where it is -inf."""
    require_hardware()
    gpu, sizes = device(0), CASES[0][0]
    a = replace(_attention(*CASES[0], "bfloat16"), mask=(0, 0, sizes.keys, 1), statistics=False)
    dtype = reference.dtype_of("bfloat16")
    mask = np.zeros((sizes.rows, sizes.keys), np.float32)
    mask[3] = lost
    q, k, v = (gpu.to_device(np.ones(sizes.shape(part), dtype).reshape(-1)) for part in ("q", "k", "v"))
    out = gpu.empty((math.prod(sizes.shape("out")),), dtype)
    attend(gpu, a, q, k, v, out, mask=gpu.to_device(mask))
    found = _seen(gpu.to_host(out), sizes.shape("out"), a.out)
    assert np.array_equal(np.isnan(found[:, :, 3]), np.full(found[:, :, 3].shape, math.isinf(lost)))
    assert np.all(np.delete(found, 3, axis=2) == 1)
