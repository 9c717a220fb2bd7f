"""What the backend of GPUs puts together, as whole graphs: values beside the CPU's, on the fake driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.layers import batch_norm, convolution, normal
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def fused(build: Callable[[Any], Sequence[Any]], x: np.ndarray, precision: str = "f32") -> list[str]:
    """Run a graph on the CPU and three times on a GPU (launched, recorded, replayed).

    Returns:
        what the GPU's backend made, in lines; of numbers that are further apart than rounding explains a failure.
    """
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = list(build(given))
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    allowed = perturbation.allowed(graph, wanted, {given: x})
    with Session(graph, devices={"GPU": 1}, precision=precision) as session:
        for _ in range(3):
            found = session.run(wanted, {given: x})
            for value, one, other, apart in zip(wanted, found, expected, allowed, strict=True):
                tolerance.assert_within(one, other, apart, value.name)
        return [line for line in session.explain(wanted, {given: x}) if "gpu_" in line and not line.startswith("  %")]


def _norm(x: Any, columns: int) -> Any:
    mean, variance = gm.moments(x, [-1], keepdims=True)
    return gm.batch_normalization(x, mean, variance, normal(columns, seed=1), 1 + normal(columns, seed=2), 1e-3)


@pytest.mark.parametrize("shape", [(4, 6, 24), (150, 33), (3, 260)])
def test_a_layer_norm_and_its_gradient(shape: tuple[int, ...]) -> None:
    def build(x: Any) -> list[Any]:
        y = _norm(x + normal(*shape, seed=4), shape[-1])
        return [y, *gradients([gm.reduce_sum(y * normal(*shape, seed=5))], [x])]

    lines = fused(build, normal(*shape))
    assert sum("gpu_rows" in line for line in lines) <= 2 and not any("Mean" in line for line in lines[1:])


def test_attention() -> None:
    """Scores that are scaled and masked, their softmax and its gradient."""

    def build(x: Any) -> list[Any]:
        scores = gm.matmul(x, x, transpose_b=True) * 0.25 + normal(2, 1, 1, 5, seed=1)
        y = gm.matmul(gm.softmax(scores), x)
        return [y, *gradients([gm.reduce_sum(y * normal(2, 3, 5, 8, seed=2))], [x])]

    lines = fused(build, normal(2, 3, 5, 8))
    assert sum("gpu_rows" in line for line in lines) == 2


def test_reductions_that_are_not_of_rows_stay_calls() -> None:
    def build(x: Any) -> list[Any]:
        y = gm.square(x)
        return [
            y - gm.reduce_mean(y, [0], keepdims=True),
            gm.reduce_sum(y * 0.5, [0, 1]),
            gm.reduce_max(y - 1.0, [1, 2]),
        ]

    assert not any("gpu_rows" in line for line in fused(build, normal(3, 4, 6)))


def test_what_a_row_gives_is_taken_as_another_shape() -> None:
    """Columns as long as there are rows: a sum of each row, without the axis, is broadcast along the other one."""

    def build(x: Any) -> list[Any]:
        total = gm.reduce_sum(x * 2.0, [1])
        return [x - total, x - gm.reshape(total, [6, 1]), gm.reshape(total, [2, 3]) + 1.0]

    fused(build, normal(6, 6))


def _gelu_tanh(y: Any) -> Any:
    return 0.5 * y * (1.0 + gm.tanh(np.float32(np.sqrt(2 / np.pi)) * (y + np.float32(0.044715) * gm.pow(y, 3.0))))


def _gelu(y: Any) -> Any:
    return y * (0.5 * (1.0 + ops.erf(y * np.float32(np.sqrt(0.5)))))


@pytest.mark.parametrize("precision", ["f32", "tf32"])
def test_products_with_their_bias_and_activation(precision: str) -> None:
    w, b = normal(8, 12, seed=1), normal(12, seed=2)

    def build(x: Any) -> list[Any]:
        flat = gm.reshape(x, [15, 8])
        biased = gm.bias_add(gm.matmul(flat, w), b)
        turned = gm.reshape(gm.matmul(flat, w.T.copy(), transpose_b=True), [3, 5, 12]) + b
        rows = ops.batch_mat_mul_v2(x, gm.constant(w)) + b
        return [
            gm.relu(biased),
            turned,
            gm.relu(rows),
            *(f(gm.bias_add(gm.matmul(flat, w), b)) for f in (_gelu_tanh, _gelu)),
        ]

    lines = [line for line in fused(build, normal(3, 5, 8), precision) if "gpu_product" in line]
    assert len(lines) == 5
    assert [sum(f"bias and {name}" in line for line in lines) for name in ("Relu", "GeluApproximate")] == [2, 1]


def test_who_learns_sees_a_nan() -> None:
    """The library's relu may lose it, so a program with gradients keeps its own."""
    w, b = normal(8, 12, seed=1), normal(12, seed=2)

    def build(x: Any) -> list[Any]:
        y = gm.relu(gm.bias_add(gm.matmul(x, w), b))
        return [y, *gradients([gm.reduce_sum(y)], [x])]

    lines = fused(build, normal(4, 8))
    assert any("with bias]" in line for line in lines) and not any("and Relu]" in line for line in lines)


@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_with_what_follows_them(kernel: int) -> None:
    """A block with a shortcut, as residual networks have it, and one with a bias."""

    def build(x: Any) -> list[Any]:
        y = gm.relu(batch_norm(convolution(x, 4, 8, kernel), 8))
        y = batch_norm(convolution(y, 8, 8, kernel, seed=5), 8, seed=5)
        y = gm.relu(y + batch_norm(convolution(x, 4, 8, 1, seed=6), 8, seed=6))
        z = ops.relu6(gm.bias_add(convolution(y, 8, 6, kernel, 2, seed=7), normal(6)))
        return [y, z, y + 1.0]

    lines = fused(build, normal(2, 6, 6, 4))
    assert sum("gpu_convolution" in line for line in lines) == 4
    assert sum("a residual" in line for line in lines) == 1 and sum("Relu6" in line for line in lines) == 1


def test_folded_filters_follow_their_variables() -> None:
    """They are made once, and again when a variable is changed: in place, by another array, from another program."""
    w, scale = normal(3, 3, 4, 8), 1 + normal(8, seed=1) * np.float32(0.1)
    zeros, ones = np.zeros(8, np.float32), np.ones(8, np.float32)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, 5, 5, 4])
        filters = gm.Variable(w, use_resource=True)
        gamma = gm.Variable(scale, use_resource=True)
        y = ops.conv2d(x, filters.value(), strides=[1, 1, 1, 1], padding="SAME")
        y = gm.relu(gm.fused_batch_norm(y, gamma.value(), zeros, zeros, ones, is_training=False)[0])
        double = [filters.assign_add(filters.value()), gamma.assign_sub(gm.constant(0.1 * ones))]
        start = gm.global_variables_initializer()
    given = normal(1, 5, 5, 4)
    found: dict[str, list[np.ndarray]] = {}
    for device in ("CPU", "GPU"):
        with Session(graph, devices={device: 1}) as session:
            session.run(start)
            got = found[device] = []
            for step in range(12):
                got.append(session.run(y, {x: given}))
                if step in (3, 4, 7):
                    session.run(double)
                if step == 9:
                    filters.load(w, session)
    for step, (one, other) in enumerate(zip(found["GPU"], found["CPU"], strict=True)):
        # 36 products are added; the weights, and what comes of them, are rounded four times more
        size = np.abs(given).max() * 36 * np.abs(w).max() * 8 * np.abs(scale).max()
        tolerance.assert_within(one, other, tolerance.likely(40) * size, f"step {step}")


@pytest.mark.parametrize("name", ["GradientDescent", "Momentum", "Adam"])
def test_variables_are_updated_together(name: str) -> None:
    """The bits are those of one update after the other, whatever their sizes; 30 variables are two launches."""
    rules = {
        "GradientDescent": lambda: gm.train.GradientDescent(0.1),
        "Momentum": lambda: gm.train.Momentum(0.1, 0.9),
        "Adam": lambda: gm.train.Adam(0.1),
    }
    with gm.Graph().as_default() as graph:
        shapes = [(1 + 37 * at,) for at in range(28)] + [(40, 33), ()]
        weights = [gm.Variable(normal(*shape, seed=at), use_resource=True) for at, shape in enumerate(shapes)]
        loss = gm.add_n([gm.reduce_sum(each.value() * gm.constant(normal(*shape, seed=9))) for each, shape in
                         zip(weights, shapes, strict=True)])  # fmt: skip
        step = rules[name]().minimize(loss)
        start = gm.global_variables_initializer()
        read = [each.value() for each in weights]
    found: dict[str, list[np.ndarray]] = {}
    for device in ("CPU", "GPU"):
        with Session(graph, devices={device: 1}) as session:
            session.run(start)
            for _ in range(4):
                session.run(step)
            found[device] = session.run(read)
            if device == "GPU":
                lines = [line for line in session.explain(step) if "gpu_updates" in line and not line.startswith("  %")]
                assert len([line for line in lines if "variables as one kernel" in line]) == 2, lines
    for one, other in zip(found["GPU"], found["CPU"], strict=True):
        # four updates of up to eight roundings each; weights move by less than 0.1 times four
        tolerance.assert_within(one, other, tolerance.likely(4 * 8) * (np.abs(other) + 0.4), name)


def test_what_a_block_s_gradient_is_is_added_up_where_it_is_made() -> None:
    """Two residual blocks: the gradient of the first is a sum through a relu, which its norm's gradient adds up."""
    shape = (3, 6, 5, 8)

    def norm(x: Any, seed: int) -> tuple[Any, list[Any]]:
        scale, offset = gm.constant(1 + normal(8, seed=seed) * np.float32(0.1)), gm.constant(normal(8, seed=seed + 1))
        nothing = gm.constant(np.zeros(0, np.float32))
        return ops.fused_batch_norm_v3(x, scale, offset, nothing, nothing, is_training=True)[0], [scale, offset]

    def build(x: Any) -> list[Any]:
        first, of_first = norm(ops.max_pool(x, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), 1)
        z = gm.relu(first + x)
        second, of_second = norm(ops.max_pool(z, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"), 3)
        loss = gm.reduce_sum(gm.relu(second + z) * normal(*shape, seed=9))
        return [z, *gradients([loss], [x, *of_first, *of_second])]

    lines = fused(build, normal(*shape))
    assert sum(" gpu_summed_nest " in line for line in lines) == 1, lines


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_batch_norms_of_training(form: str) -> None:
    """A residual block and its gradients: statistics and sums in one pass each, what is elementwise fused."""
    shape = (3, 6, 5, 8) if form == "NHWC" else (3, 8, 6, 5)

    def norm(x: Any, seed: int) -> tuple[Any, list[Any]]:
        scale, offset = gm.constant(1 + normal(8, seed=seed) * np.float32(0.1)), gm.constant(normal(8, seed=seed + 1))
        nothing = gm.constant(np.zeros(0, np.float32))
        made = ops.fused_batch_norm_v3(x, scale, offset, nothing, nothing, is_training=True, data_format=form)
        return made[0], [scale, offset, made[1], made[2]]

    def build(x: Any) -> list[Any]:
        first, of_first = norm(x * 0.5 + normal(*shape, seed=8), 1)
        y = ops.max_pool(gm.relu(first), [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
        second, of_second = norm(y, 3)
        third, of_third = norm(x, 5)
        z = gm.relu(second + third)
        sources = [x, *of_first[:2], *of_second[:2], *of_third[:2]]
        loss = gm.reduce_sum(z * normal(*shape, seed=9))
        return [z, *of_first[2:], *of_second[2:], *gradients([loss], sources)]

    lines = fused(build, normal(*shape))
    kinds = [sum(f" {kind} " in line for line in lines) for kind in ("gpu_moments", "gpu_norm_sums")]
    assert kinds == [3, 3] and sum("through the relu" in line for line in lines) == 1, lines


@pytest.mark.parametrize("shape", [(150, 33), (4, 6, 24)])
def test_what_repeats_a_number_of_a_row(shape: tuple[int, ...]) -> None:
    """The gradient of a mean is repeated along its row: by kernels that take it, by itself where it is all there is."""

    def build(x: Any) -> list[Any]:
        mean = gm.reduce_mean(gm.square(x), [-1], keepdims=True)
        alone = gradients([gm.reduce_sum(mean * normal(*shape[:-1], 1, seed=1))], [x])
        spread = gm.tile(mean, [*[1] * (len(shape) - 1), shape[-1]])
        return [*alone, spread, gm.reduce_sum(gm.exp(spread) * x, [-1]), gm.reduce_max(gm.tanh(spread), [-1])]

    fused(build, normal(*shape))


def test_gradients_of_norms_repeat_nothing_in_memory() -> None:
    def build(x: Any) -> list[Any]:
        y = _norm(x + normal(150, 33, seed=4), 33)
        return gradients([gm.reduce_sum(y * normal(150, 33, seed=5))], [x])

    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [150, 33])
        wanted = build(given)
    with Session(graph, devices={"GPU": 1}) as session:
        assert not any("Tile" in line.split()[1:2] for line in session.explain(wanted, {given: normal(150, 33)}))
