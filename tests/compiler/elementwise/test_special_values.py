"""Infinities, NaN, denormals, the largest numbers, both zeros: compiled and node by node."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.modes import MODES, check_modes, session
from tests.compiler.operations.rows import numbers
from tests.compiler.operations.rows_elementwise import SPELLED, UNARY
from toolkit import client as gm

ops = gm.ops
_LARGEST = float(np.finfo(np.float32).max)
INFINITE = [
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    _LARGEST,
    -_LARGEST,
    1e30,
    -1e30,
    88.8,
    -88.8,
    104.0,
    -104.0,
    1e-45,
    -1e-40,
    1e-38,
]


def tensor(special: list[float], *shape: int) -> Any:
    """The special numbers again and again, among ordinary ones."""
    values = numbers(*shape).reshape(-1)
    values[::2] = np.resize(np.array(special, np.float32), values[::2].shape)
    return values.reshape(shape)


def _run(function: Any, *given: Any, steps: bool = False, modes: tuple[str, ...] = ()) -> Any:
    """Check a function of tensors; with `steps`, in a program that changes a variable."""
    with gm.Graph().as_default() as graph:
        inputs = [gm.placeholder(gm.float32, list(value.shape), name=f"x{i}") for i, value in enumerate(given)]
        made = function(*inputs)
        fetches = list(made) if isinstance(made, list | tuple) else [made]
        counter = gm.get_variable("counter", [], initializer=gm.initializers.Constant(0.0), use_resource=True)
        if steps:
            fetches.append(gm.ops.assign_add_variable_op(counter.handle, 1.0))
    feeds = {f"x{i}:0": value for i, value in enumerate(given)}
    if not steps:
        return check_modes(graph, fetches, feeds, modes=modes)
    results: dict[str, Any] = {}
    for mode in MODES:
        with session(graph, mode) as running:
            running.run(counter.initializer)
            results[mode] = running.run(fetches, feeds)[:-1]
    return results


@pytest.mark.parametrize("shape", [(64, 65), (2, 30, 31, 4), (3, 7)])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_of_extreme_numbers(name: str, shape: tuple[int, ...]) -> None:
    _run(UNARY[name], tensor(INFINITE, *shape))


@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_keep_nan(name: str) -> None:
    _run(UNARY[name], tensor([np.nan], 64, 65))


@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_keep_nan_in_programs_that_write(name: str) -> None:
    results = _run(lambda x: [UNARY[name](x), UNARY[name](ops.tanh(x) * 2.0)], tensor([np.nan], 64, 65), steps=True)
    for mode, values in results.items():
        assert all(np.isnan(value.reshape(-1)[::2]).all() for value in values), mode


@pytest.mark.parametrize("name", sorted(SPELLED))
def test_activations_of_large_numbers(name: str) -> None:
    # gelus of infinity are inf - inf somewhere in the formula, and not in oneDNN's function
    _run(SPELLED[name], tensor([200.0, -200.0, 0.0, 1e-38, 1e6, -1e6], 64, 65))


#: what an activation follows: each writes its end with code of its own, or leaves it to oneDNN
_HOSTS: dict[str, Any] = {
    "product": lambda x: ops.mat_mul(ops.reshape(x, [-1, 16]), np.eye(16, dtype=np.float32)),
    "convolution": lambda x: ops.conv2d(
        x, np.eye(16, dtype=np.float32)[None, None], strides=[1, 1, 1, 1], padding="SAME"
    ),
    "depthwise": lambda x: ops.depthwise_conv2d_native(
        x, np.ones((1, 1, 16, 1), np.float32), strides=[1, 1, 1, 1], padding="SAME"
    ),
}


@pytest.mark.parametrize("host", sorted(_HOSTS))
@pytest.mark.parametrize("name", ["sigmoid", "swish", "swish scaled", "elu", "tanh", "gelu", "gelu tanh", "hard swish"])
def test_activations_behind_others_of_large_numbers(name: str, host: str) -> None:
    function = SPELLED.get(name, UNARY.get(name))
    assert function is not None
    large = [87.5, -87.5, 200.0, -200.0, 1e6, -1e6, 1e15, -1e15]
    if name in ("sigmoid", "swish", "tanh", "elu"):
        large += [1e30, -1e30, 2e38, -2e38]  # whose cubes and sums with others are too large
    _run(
        lambda x: function(_HOSTS[host](x)),
        np.repeat(np.resize(np.array(large, np.float32), 128), 256).reshape(2, 64, 16, 16),
    )


@pytest.mark.parametrize("name", sorted(SPELLED))
def test_activations_keep_nan(name: str) -> None:
    results = _run(SPELLED[name], tensor([np.nan], 64, 65), steps=True)
    for mode, values in results.items():
        assert np.isnan(values[0].reshape(-1)[::2]).all(), mode


@pytest.mark.parametrize("constant", [0.0, -0.0, np.inf, -np.inf, 1e-40, 1e-45, 3e38, -1e38, 1e-38])
def test_arithmetic_with_special_constants(constant: float) -> None:
    c = np.float32(constant)
    _run(lambda x: [x * c, x + c, x - c, c - x, x / c, c / x], tensor([1.0, -1.0, 0.5, 1e-10, 1e-38, 2.0], 64, 65))
    vector = np.resize(np.array([c, 1.0, 2.0], np.float32), 65)
    _run(
        lambda x: [x * vector, x + vector, x - vector, vector - x, x / vector, vector / x],
        tensor([1.0, -1.0, 0.5, 1e-10, 1e-38, 2.0], 64, 65),
    )


def test_arithmetic_of_infinities() -> None:
    _run(
        lambda x, y: [x + y, x - y, x * y, x / y, ops.relu(x * y + 1.0), ops.maximum(x, y)],
        tensor(INFINITE, 64, 65), tensor([*INFINITE[::-1][:-1], np.inf], 64, 65),
        modes=("node by node", "dataflow", "compiled without oneDNN"),
    )  # fmt: skip
    _run(lambda x, y: [x + y, x - y, x * y, x / y], tensor(INFINITE, 64, 65), tensor(INFINITE[1:], 64, 65))


def test_products_scaled_by_extremes() -> None:
    w = numbers(64, 64)
    for c in (np.float32(1e30), np.float32(1e-30), np.float32(0), np.float32(np.inf)):
        _run(lambda x, c=c: [ops.mat_mul(x, w) * c, ops.mat_mul(x, w) + c, c - ops.mat_mul(x, w)], numbers(64, 64))
    _run(lambda x: [ops.mat_mul(x, w * np.float32(1e-30)) * np.float32(1e30)], numbers(64, 64) * np.float32(1e-5))
    _run(lambda x: ops.mat_mul(x, w * np.float32(1e30)) * np.float32(1e-30), numbers(64, 64))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_products_and_sums_hand_on(special: float) -> None:
    x = numbers(64, 64)
    x[5, 7] = special
    image = numbers(2, 13, 14, 8)
    image[0, 5, 6, 3] = special
    _run(lambda x: [ops.mat_mul(x, numbers(64, 64)), ops.mean(x, [1]), ops.sum(x, [0]), ops.softmax(x)[:5]], x)
    _run(
        lambda y: [
            ops.mean(y, [1, 2]), ops.avg_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
            ops.transpose(y, [3, 1, 2, 0]), ops.concat_v2([y, y], 3), ops.pad(y, [[1, 1]] * 4),
        ],
        image,
    )  # fmt: skip


def test_maxima_of_infinities() -> None:
    window = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    image = tensor([-np.inf, np.inf, -_LARGEST], 2, 13, 14, 8)
    _run(lambda y: [ops.max_pool(y, **window), ops.max(y, [1, 2])], image)
    _run(lambda y: ops.max_pool(y, **window), np.full((2, 13, 14, 8), -_LARGEST, np.float32))
    # oneDNN starts with the lowest finite number: where there is nothing above it, that is the maximum
    with gm.Graph().as_default() as graph:
        made = ops.max_pool(gm.placeholder(gm.float32, [2, 13, 14, 8], name="x"), **window)
    for mode in MODES:
        with session(graph, mode) as running:
            assert (running.run(made, {"x:0": np.full((2, 13, 14, 8), -np.inf, np.float32)}) <= -_LARGEST).all(), mode


def test_a_pool_hands_on_nan_in_programs_that_write() -> None:
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    image = np.full((2, 16, 16, 8), np.nan, np.float32)
    for mode, (value, sides) in _run(
        lambda y: [ops.max_pool(y, **window), ops.mean(y, [1, 2])], image, steps=True
    ).items():
        assert np.isnan(value).all() and np.isnan(sides).all(), mode


def test_gradients_hand_on_nan_in_programs_that_write() -> None:
    dy = tensor([np.nan], 64, 65)
    x = np.abs(numbers(64, 65)) + 1
    found = _run(
        lambda x, dy: [ops.relu_grad(dy, x), ops.tanh_grad(x, dy), ops.sigmoid_grad(x, dy), ops.softmax(dy)[:, ::2]],
        x, dy, steps=True,
    )  # fmt: skip
    for mode, values in found.items():
        for value in values[:3]:
            assert np.isnan(value.reshape(-1)[::2]).all(), mode
        assert np.isnan(values[3]).any(), mode


def test_softmax_of_extremes() -> None:
    rows = np.zeros((64, 65), np.float32)
    rows[0], rows[1], rows[2, :3], rows[3, 5], rows[4] = -np.inf, 1e38, -np.inf, np.inf, -_LARGEST
    rows[5, ::2], rows[6, 1] = -1e9, 1e38
    undefined = [0, 3]  # inf - inf: NaN somewhere in the row
    defined = np.delete(rows, undefined, axis=0)
    _run(lambda x: [ops.softmax(x), ops.log_softmax(x)], np.concatenate([defined, defined]))
    for mode in MODES:
        with gm.Graph().as_default() as graph:
            made = ops.softmax(gm.placeholder(gm.float32, [64, 65], name="x"))
        with session(graph, mode) as running:
            value = running.run(made, {"x:0": rows})
        assert np.isnan(value[undefined]).any(1).all(), mode


def _scores(value: float) -> tuple[Any, list[Any], dict[str, Any]]:
    """The softmax of a row of scores with this number in it, beside enough work for oneDNN to be loaded."""
    row = numbers(1, 100) * 3
    row[0, 37] = value
    with gm.Graph().as_default() as graph:
        x, large = gm.placeholder(gm.float32, [1, 100], name="x"), gm.placeholder(gm.float32, [64, 64], name="large")
        fetches = [ops.softmax(x), ops.mat_mul(large, numbers(64, 64))]
    return graph, fetches, {"x:0": row, "large:0": numbers(64, 64)}


@pytest.mark.parametrize("value", [value for value in INFINITE if value != np.inf])
def test_softmax_of_one_row(value: float) -> None:
    check_modes(*_scores(value))


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_softmax_of_one_row_that_has_none(value: float) -> None:
    graph, fetches, feeds = _scores(value)
    for mode in MODES:
        with session(graph, mode) as running:
            assert np.isnan(running.run(fetches, feeds)[0]).any(), mode
