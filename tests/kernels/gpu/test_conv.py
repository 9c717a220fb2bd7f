"""Convolutions on a GPU: by a product, by the library and by our own kernels, with what is fused behind them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels import beside_cpu
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit.kernels.cpu.nn import conv_math as nn_conv_math
from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.cuda import filters as filters_module
from toolkit.kernels.cuda.convolving import Fused, Layer, convolve
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.cuda.filters import Filters
from toolkit.kernels.cuda.libraries.base import Convolution

OPS = (
    "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D", "Conv3DBackpropInputV2",
    "Conv3DBackpropFilterV2", "_FusedConv2D",
)  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_without_a_library(op: str) -> None:
    with without_libraries():
        problems = [each for each in beside_cpu.run_op(beside_cpu.Work(op, "GPU", 12)) if each.problem]
    assert not problems, "\n".join(f"{each.label}: {each.problem}" for each in problems)


WINDOWS = Windows((6, 5), (3, 2), (2, 1), (1, 1), ((1, 1), (0, 1)), (3, 5))
LAYER = Layer(WINDOWS, 2, 4, 6, 1, False)


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("refuses", [False, True], ids=["fused", "apart"])
@pytest.mark.parametrize("channels_first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize("pointwise", [False, True], ids=["windows", "pointwise"])
def test_what_follows_is_the_same_fused_and_apart(
    refuses: bool, channels_first: bool, pointwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that has no plan with the epilogue leaves it to a kernel of ours."""
    gpu = device(0)
    windows = Windows((6, 5), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), (6, 5)) if pointwise else WINDOWS
    layer = Layer(windows, 2, 4, 6, 1, channels_first)
    x, w, bias = _numbers(2, *windows.sizes, 4), _numbers(*windows.kernel, 4, 6), _numbers(6)
    added = _numbers(2, *windows.out, 6)
    if refuses:
        dnn: Any = gpu.context.dnn
        monkeypatch.setattr(dnn, "supports", lambda convolution: not convolution.epilogue)

    def given(value: Any) -> Any:
        return gpu.to_device(np.ascontiguousarray(np.moveaxis(value, -1, 1)) if channels_first else value)

    fused = Fused((gpu.to_device(bias),), given(added), "Relu6")
    y = gpu.to_host(convolve(gpu, layer, given(x), gpu.to_device(w), Filters(is_constant=False), fused))
    found = np.moveaxis(y, 1, -1) if channels_first else y
    sums = nn_conv_math.forward(x, w, windows)
    near = tolerance.likely(w[..., 0].size + 2) * (nn_conv_math.forward(abs(x), abs(w), windows) + 2)
    assert np.all(np.abs(found - np.clip(sums + bias + added, 0, 6)) <= near)


def _turned(gpu: CudaDevice, filters: Filters, w: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often filters are turned over in two convolutions."""
    times = 0
    turn = filters_module._turned

    def counted(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        return turn(*arguments)

    monkeypatch.setattr(filters_module, "_turned", counted)
    x = gpu.to_device(_numbers(2, 6, 5, 4))
    for _ in range(2):
        convolve(gpu, LAYER, x, w, filters)
    return times


def test_filters_that_never_change_are_turned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device(0)
    w = gpu.to_device(_numbers(3, 2, 4, 6))
    assert _turned(gpu, Filters(is_constant=True), w, monkeypatch) == 1


def test_filters_that_may_change_are_turned_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optimizer may write a variable's array in its place: that it is the same array says nothing."""
    gpu = device(0)
    w = gpu.to_device(_numbers(3, 2, 4, 6))
    assert _turned(gpu, Filters(is_constant=False), w, monkeypatch) == 2


def test_determinism_is_part_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = device(0)
    dnn: Any = gpu.context.dnn
    dnn.plans.clear()
    x, w = gpu.to_device(_numbers(2, 6, 5, 4)), gpu.to_device(_numbers(3, 2, 4, 6))
    layer = dataclasses.replace(LAYER, _plans={})
    for value in (False, True):
        monkeypatch.setattr(gpu, "deterministic", value)
        for _ in range(2):
            convolve(gpu, layer, x, w, Filters(is_constant=False))
    plans: set[Convolution] = dnn.plans
    assert {plan.deterministic for plan in plans} == {False, True}


def test_one_spatial_axis_is_two_for_the_library() -> None:
    layer = Layer(Windows((7,), (3,), (2,), (1,), ((1, 0),), (3,)), 2, 4, 6, 2, False)
    planned = layer.planned("forward", np.dtype(np.float32), deterministic=False)
    assert planned.sizes == (1, 7) and planned.kernel == (1, 3) and planned.pads == ((0, 0), (1, 0))
    assert planned.w_shape == (6, 1, 3, 2)
