"""Kernels on oneDNN: the op suites once more with a primitive for everything however small, and what is their own."""

# the suites are imported to be run here too, with the fixture below
# pyright: reportUnusedImport=false

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.compiler.targets import EAGER
from tests.kernels import op_suite
from tests.kernels.math.test_ops_reduce import test_reduce  # noqa: F401
from tests.kernels.nn.test_nn_activation import (  # noqa: F401
    test_channels_first_batch_norm,
    test_nn,
)
from tests.kernels.nn.test_nn_conv import (  # noqa: F401
    test_channels_first,
    test_conv,
)
from tests.kernels.nn.test_nn_pool import test_channels_first as test_channels_first_pools  # noqa: F401
from tests.kernels.nn.test_nn_pool import test_pool  # noqa: F401
from tests.kernels.op_suite import Bounds, Case, build, compare_outputs, prepare, run_ours
from tests.patience import HUNG
from toolkit.kernels import catalogue, registry
from toolkit.kernels.cpu.onednn import cached
from toolkit.kernels.cpu.onednn.library import library, processor_has_bfloat16

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(library() is None, reason="there is no oneDNN here"),
]


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A primitive for tensors of any size."""
    monkeypatch.setattr(op_suite, "processor", EAGER)


def _watch(patch: pytest.MonkeyPatch) -> list[str]:
    """The implementations of the primitives that are run from now on."""
    names: list[str] = []
    run = cached.Kept.run

    def spy(self: cached.Kept, *arrays: Any) -> None:
        names.append(self.primitive.implementation)
        run(self, *arrays)

    patch.setattr(cached.Kept, "run", spy)
    return names


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The implementations of the primitives that were run."""
    return _watch(monkeypatch)


def _run(case: Case, *, numpy: bool = False) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        if numpy:
            patch.setenv("GRAPHMILL_ONEDNN", "off")
        return run_ours(case)


def _agree(case: Case, used: list[str]) -> None:
    """oneDNN and NumPy give the same; a primitive was used, and no reference code."""
    used.clear()
    got = _run(case)
    assert used and not any(name.startswith("ref") for name in used), f"{case.label}: {used}"
    compare_outputs(case, got, _run(case, numpy=True))


def _sizes(tensor: Any) -> Any:
    return np.array(tensor.shape, np.int32)


def _random(*shape: int) -> Any:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype(np.float32)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """An op, the shapes of image (channels last) and filter, attributes for that layout."""
    op = draw(st.sampled_from(["Conv2D", "Conv3D", "DepthwiseConv2dNative"]))
    spatial = 3 if op == "Conv3D" else 2

    def each(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(spatial)]

    groups = draw(st.sampled_from([1, 1, 2, 3])) if op == "Conv2D" else 1
    channels, filters = groups * draw(st.integers(1, 20)), groups * draw(st.integers(1, 20))
    kernel, sizes, strides, dilations = each(1, 4), each(1, 14), each(1, 3), each(1, 2)
    if op == "DepthwiseConv2dNative":
        strides = strides[:1] * 2
        filters, groups = draw(st.integers(1, 3)), 1
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"] if spatial == 2 else ["SAME", "VALID"]))
    if padding == "VALID":
        sizes = [max(n, (k - 1) * d + 1) for n, k, d in zip(sizes, kernel, dilations, strict=True)]
    attrs: dict[str, Any] = {"strides": [1, *strides, 1], "dilations": [1, *dilations, 1], "padding": padding}
    if padding == "EXPLICIT":
        # each window sees something: else the output could be empty
        pads = [draw(st.integers((k - 1) * d, (k - 1) * d + 2)) for k, d in zip(kernel, dilations, strict=True)]
        attrs["explicit_paddings"] = [0, 0, *(n for pad in pads for n in (pad, draw(st.integers(0, 3)))), 0, 0]
    return op, (draw(st.integers(1, 3)), *sizes, channels), (*kernel, channels // groups, filters), attrs


def _first(op: str, image: Any, attrs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """An image and attributes, channels first."""
    turned = {
        name: [*value[:1], value[-1], *value[1:-1]] for name, value in attrs.items() if name in ("strides", "dilations")
    }
    if "explicit_paddings" in attrs:
        pads = attrs["explicit_paddings"]
        turned["explicit_paddings"] = [*pads[:2], *pads[-2:], *pads[2:-2]]
    layout = "NCDHW" if op == "Conv3D" else "NCHW"
    return np.ascontiguousarray(np.moveaxis(image, -1, 1)), {**attrs, **turned, "data_format": layout}


@settings(max_examples=60, deadline=None)
@given(drawn=convolutions(), channels_first=st.booleans())
def test_convolutions_and_gradients(drawn: Any, channels_first: bool) -> None:
    op, x_shape, w_shape, attrs = drawn
    x, w = _random(*x_shape), _random(*w_shape)
    if channels_first:
        x, attrs = _first(op, x, attrs)
    with pytest.MonkeyPatch.context() as patch:
        names = _watch(patch)
        _agree(Case(op, [x, w], attrs), names)
        [y] = _run(Case(op, [x, w], attrs))
        dy = np.cos(y)
        suffix = "V2" if op == "Conv3D" else ""
        by_input = Case(f"{op}BackpropInput{suffix}", [_sizes(x), w, dy], attrs)
        by_filter = Case(f"{op}BackpropFilter{suffix}", [x, _sizes(w), dy], attrs)
        for case in (by_input, by_filter):
            _agree_or_numpy(case, names)


def _agree_or_numpy(case: Case, names: list[str]) -> None:
    """As `_agree`; for what oneDNN has only reference code, NumPy's kernel runs."""
    got = _run(case)
    assert not any(name.startswith("ref") for name in names)
    compare_outputs(case, got, _run(case, numpy=True))


def _allowed(case: Case) -> Any:
    """How far the numbers of oneDNN's and NumPy's kernel may be apart."""
    return Bounds(case, _run(case, numpy=True)).of(0)


_WINDOW = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}


ACTIVATIONS = ["Elu", "Relu", "Relu6", "Sigmoid"]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0, 1e30, -1e30, 1e-40, 88.8, -104.0])
@pytest.mark.parametrize("op", ACTIVATIONS)
def test_activations(op: str, special: float, used: list[str]) -> None:
    x = _random(7, 50) * 10
    _agree(Case(op, [x]), used)
    _agree(Case(op, [x.T]), used)
    x[2:5] = special
    case = Case(op, [x])
    compare_outputs(case, _run(case), _run(case, numpy=True))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("op", ["MaxPool", "AvgPool", "Softmax", "LogSoftmax", "MatMul", "FusedBatchNormV3", "Conv2D"])
def test_special_numbers(op: str, special: float) -> None:
    image = _random(2, 13, 14, 16)
    image[1, 2:6, 3:9, 4:] = special
    rows = image.reshape(-1, 16)
    vectors = [_random(16) ** 2 + 1 for _ in range(4)]
    case = {
        "MaxPool": Case(op, [image], _WINDOW),
        "AvgPool": Case(op, [image], _WINDOW),
        "Softmax": Case(op, [rows]),
        "LogSoftmax": Case(op, [rows]),
        "MatMul": Case(op, [rows, _random(16, 5)]),
        "FusedBatchNormV3": Case(op, [image, *vectors], {"is_training": False}),
        "Conv2D": Case(op, [image, _random(3, 3, 16, 8)], {"strides": [1] * 4, "padding": "SAME"}),
    }[op]
    compare_outputs(case, _run(case), _run(case, numpy=True))


@pytest.mark.parametrize("special", [np.nan, -np.inf, 1.0])
def test_gradients_of_pools_of_special_numbers(special: float) -> None:
    image = _random(2, 13, 14, 16).round()
    image[1] = special
    [y] = _run(Case("MaxPool", [image], _WINDOW))
    dy = _random(*y.shape)
    case = Case("MaxPoolGrad", [image, y, dy], _WINDOW)
    compare_outputs(case, _run(case), _run(case, numpy=True))


def _empty() -> Iterator[Case]:
    image, attrs = np.zeros((0, 5, 6, 4), np.float32), {"strides": [1] * 4, "padding": "SAME"}
    yield Case("Conv2D", [image, _random(3, 3, 4, 2)], attrs)
    yield Case(
        "Conv2DBackpropFilter", [image, np.array([3, 3, 4, 2], np.int32), np.zeros((0, 5, 6, 2), np.float32)], attrs
    )
    yield Case("Conv2DBackpropInput", [_sizes(image), _random(3, 3, 4, 2), image[..., :2]], attrs)
    yield Case("MaxPool", [image], _WINDOW)
    yield Case("AvgPoolGrad", [_sizes(image), np.zeros((0, 3, 3, 4), np.float32)], _WINDOW)
    yield Case("MatMul", [np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32)])
    yield Case("BatchMatMulV2", [np.zeros((0, 3, 4), np.float32), _random(1, 4, 5)])
    yield Case("Softmax", [np.zeros((3, 0), np.float32)])


@pytest.mark.parametrize("case", list(_empty()), ids=lambda case: case.op)
def test_empty_tensors(case: Case) -> None:
    for mine, wanted in zip(_run(case), _run(case, numpy=True), strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_products_are_primitives(used: list[str]) -> None:
    a, b = _random(3, 1, 20, 30), _random(5, 30, 40)
    _agree(Case("BatchMatMulV2", [a, b]), used)
    _agree(Case("BatchMatMulV2", [a.swapaxes(2, 3), b.swapaxes(1, 2)], {"adj_x": True, "adj_y": True}), used)
    _agree(Case("BatchMatMulV3", [a, b], {"Tout": "float32"}), used)
    _agree(Case("MatMul", [a[0, 0].T, b[0].T], {"transpose_a": True, "transpose_b": True}), used)
    _agree(Case("MatMul", [a[0, 0][:, ::2], b[0, ::2]]), used)


def test_pools_and_norms_are_primitives(used: list[str]) -> None:
    image = _random(2, 13, 14, 16)
    for op in ("MaxPool", "AvgPool"):
        _agree(Case(op, [image], _WINDOW), used)
    [y] = _run(Case("MaxPool", [image], _WINDOW))
    _agree(Case("MaxPoolGrad", [image, y, np.cos(y)], _WINDOW), used)
    _agree(Case("AvgPoolGrad", [_sizes(image), np.cos(y)], _WINDOW), used)
    vectors = [_random(16) ** 2 + 1 for _ in range(4)]
    for training in (False, True):
        _agree(Case("FusedBatchNormV3", [image, *vectors], {"is_training": training}), used)
    saved = _run(Case("FusedBatchNormV3", [image, *vectors]))[3:]
    _agree(Case("FusedBatchNormGradV3", [np.cos(image), image, vectors[0], *saved]), used)
    _agree(Case("Softmax", [image]), used)


def _compute(case: Case) -> Any:
    node = build(case, prepare(case))
    return registry.get(node).factory(registry.KernelNode(node, target=EAGER))


def test_bfloat16_where_the_processor_multiplies_it(used: list[str]) -> None:
    image, filters = (_random(*shape).astype(ml_dtypes.bfloat16) for shape in ((2, 9, 10, 32), (3, 3, 32, 16)))
    cases = [
        Case("Conv2D", [image, filters], {"strides": [1] * 4, "padding": "SAME"}),
        Case("MatMul", [image.reshape(-1, 32), filters.reshape(32, -1)]),
    ]
    for case in cases:
        used.clear()
        got = _run(case)
        assert bool(used) is processor_has_bfloat16()
        compare_outputs(case, got, _run(case, numpy=True))


def test_threads_share_a_kernel() -> None:
    filters = _random(3, 3, 8, 16)
    attrs = {"strides": [1] * 4, "padding": "SAME"}
    images = [_random(2, 9, 10, 8) + index for index in range(8)]
    compute = _compute(Case("Conv2D", [images[0], filters], attrs))
    cases = [Case("Conv2D", [image, filters], attrs) for image in images]
    wanted, allowed = [_run(case, numpy=True)[0] for case in cases], [_allowed(case) for case in cases]
    wrong: list[str] = []

    def work(index: int) -> None:
        for _ in range(50):
            if not (np.abs(compute(images[index], filters) - wanted[index]) <= allowed[index]).all():
                wrong.append(f"thread {index}")

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_filter_that_may_change_is_read_again() -> None:
    attrs = {"strides": [1] * 4, "padding": "SAME"}
    image, filters = _random(2, 9, 10, 32), _random(3, 3, 32, 64)
    compute = _compute(Case("Conv2D", [image, filters], attrs))
    first = compute(image, filters)
    twice = 2 * _allowed(Case("Conv2D", [image, filters], attrs))
    fixed = filters.view()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(compute(image, fixed), first)
    filters *= 2
    for given_filter in (filters, fixed):
        tolerance.assert_within(compute(image, given_filter), 2 * first, twice)
    constant = np.frombuffer(filters.tobytes(), np.float32).reshape(filters.shape)
    for _ in range(2):
        tolerance.assert_within(compute(image, constant), 2 * first, twice)


def test_primitives_are_bounded() -> None:
    kept = cached._Recent(3)  # pyright: ignore[reportPrivateUsage]
    made: list[int] = []
    for key in (1, 2, 3, 1, 4, 1, 2):
        kept.get(key, lambda key=key: made.append(key) or key)
    assert made == [1, 2, 3, 4, 2]


def test_without_the_library_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("Conv2D", [_random(1, 8, 8, 4), _random(3, 3, 4, 4)], {"strides": [1] * 4, "padding": "SAME"})
    node = build(case, prepare(case))
    assert registry.get(node).label == "onednn"

    def labels() -> list[str]:
        return [kernel.label for kernel in catalogue.entry("Conv2D").kernels if kernel.device_type == "CPU"]

    assert set(labels()) == {"numpy", "onednn"}
    monkeypatch.setenv("GRAPHMILL_ONEDNN", "off")
    assert registry.get(node).label == "numpy"
    assert labels() == ["numpy"]
    monkeypatch.delenv("GRAPHMILL_ONEDNN")
    monkeypatch.setattr(cached, "library", lambda: None)  # a file that cannot be loaded
    np.testing.assert_array_equal(run_ours(case)[0], _run(case, numpy=True)[0])


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    code = """
import numpy as np
from toolkit import client as gm
from toolkit.kernels import registry
from toolkit.runtime.session import Session
import os
os.environ["GRAPHMILL_SEGMENTS"] = "off"
assert len(registry.all_kernels()) > 1000
with gm.Graph().as_default() as graph:
    y = gm.ops.mat_mul(gm.placeholder(gm.float32, [None, None], name="x"), np.ones((4, 4), np.float32))
    z = gm.ops.mat_mul(gm.placeholder(gm.float32, [None, None], name="z"), np.ones((256, 256), np.float32))
with Session(graph) as session:
    session.run(y, {"x:0": np.ones((3, 4), np.float32)})
    assert "dnnl" not in open("/proc/self/maps").read(), "loaded for a small product"
    session.run(z, {"z:0": np.ones((256, 256), np.float32)})
    assert "dnnl" in open("/proc/self/maps").read(), "not loaded for a large product"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HUNG)


def test_a_process_ends_though_a_thread_of_it_is_stopped_within_the_library() -> None:
    """As one that compiles a batch when the program's last line has run: it holds the lock that `__del__` asks for."""
    code = """
import threading
import numpy as np
from toolkit.kernels.cpu.onednn.library import require
from toolkit.kernels.cpu.onednn.memory import Memory, dense

kept = Memory(dense((2, 3), np.dtype(np.float32)), np.zeros((2, 3), np.float32))
stopped = threading.Thread(target=require()._lock.acquire)
stopped.start()
stopped.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HUNG)
