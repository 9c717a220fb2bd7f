"""Products of 16-bit factors on GPUs: values within what the types allow of the CPU's, and which types are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.layers import batch_norm, convolution, normal
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.libraries.fake import FakeDnn
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops
PRECISIONS = ["bf16", "fp16"]


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def lowered(build: Callable[[Any], Sequence[Any]], x: np.ndarray, precision: str) -> list[str]:
    """Run a graph on the CPU in float32 and three times on a GPU (launched, recorded, replayed).

    Returns:
        what the GPU's backend made, in lines; of numbers that are further apart than the factors' roundings explain a
        failure, and of those that are float32's own one too.
    """
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = list(build(given))
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    allowed = perturbation.allowed(graph, wanted, {given: x}, precision=precision)
    with Session(graph, devices={"GPU": 1}, precision=precision) as session:
        for _ in range(3):
            found = session.run(wanted, {given: x})
            for value, one, other, apart in zip(wanted, found, expected, allowed, strict=True):
                assert one.dtype == np.float32
                tolerance.assert_within(one, other, apart, value.name)
        assert any(not np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
        return [line for line in session.explain(wanted, {given: x}) if "gpu_" in line and not line.startswith("  %")]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kernel", [1, 3])
def test_a_residual_block(kernel: int, precision: str) -> None:
    """Folded filters and shifts are rounded when they are made; what only convolutions take is stored in 16 bits."""

    def build(x: Any) -> list[Any]:
        y = gm.relu(batch_norm(convolution(x, 4, 8, kernel), 8))
        y = batch_norm(convolution(y, 8, 8, kernel, seed=5), 8, seed=5)
        y = gm.relu(y + batch_norm(convolution(x, 4, 8, 1, seed=6), 8, seed=6))
        y = ops.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        return [gm.bias_add(convolution(y, 8, 6, kernel, 2, seed=7), normal(6))]

    lines = lowered(build, normal(2, 6, 6, 4), precision)
    narrow = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    made = [line for line in lines if "gpu_convolution" in line]
    assert len(made) == 4 and sum(f"as {narrow}" in line for line in made) == 3, lines


@pytest.mark.parametrize("precision", PRECISIONS)
def test_attention(precision: str) -> None:
    """Scores of a softmax stay float32, its result does not; with gradients. No library has keys of four numbers."""

    def build(x: Any) -> list[Any]:
        query, key, value = (gm.matmul(x, gm.constant(normal(1, 8, 4, seed=at))) for at in (1, 2, 3))
        scores = gm.matmul(query, key, transpose_b=True) * 0.25 + normal(1, 1, 5, seed=1)
        y = gm.matmul(gm.softmax(scores), value)
        return [y, *gradients([gm.reduce_sum(y * normal(3, 5, 4, seed=2))], [x])]

    narrow = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    lines = lowered(build, normal(3, 5, 8), precision)
    products = [line for line in lines if "gpu_products" in line]
    # the scores, the result, and what of it and of its gradients is added to others in float32
    assert sum(f"{narrow} to float32" in line for line in products) >= 3
    assert sum(f"{narrow} to {narrow}" in line for line in products) >= 3, lines


@pytest.mark.parametrize("precision", PRECISIONS)
def test_norms_and_products_of_a_transformer(precision: str) -> None:
    w, b = normal(24, 16, seed=1) / np.float32(5), normal(16, seed=2)

    def norm(x: Any) -> Any:
        mean, variance = gm.moments(x, [-1], keepdims=True)
        return gm.batch_normalization(x, mean, variance, normal(24, seed=4), 1 + normal(24, seed=5), 1e-3)

    def build(x: Any) -> list[Any]:
        y = gm.bias_add(gm.matmul(norm(x), gm.constant(w)), b)
        y = y * (0.5 * (1.0 + ops.erf(y * np.float32(np.sqrt(0.5)))))
        y = norm(x + gm.matmul(y, gm.constant(w), transpose_b=True))
        return [y, *gradients([gm.reduce_sum(y * normal(6, 24, seed=6))], [x])]

    lowered(build, normal(6, 24), precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_depthwise_convolutions(form: str, precision: str) -> None:
    """Between products, with both gradients."""
    shape = (2, 6, 5, 4) if form == "NHWC" else (2, 4, 6, 5)

    def build(x: Any) -> list[Any]:
        w = gm.constant(normal(3, 3, 4, 2, seed=1) / np.float32(3))
        v = gm.constant(normal(1, 1, 8, 6, seed=2) / np.float32(3))
        strides = [1, 2, 2, 1] if form == "NHWC" else [1, 1, 2, 2]
        y = ops.depthwise_conv2d_native(x, w, strides=strides, padding="SAME", data_format=form)
        z = ops.conv2d(gm.relu(y), v, strides=[1, 1, 1, 1], padding="SAME", data_format=form)
        return [z, *gradients([gm.reduce_sum(gm.square(z))], [x, w, v])]

    lines = lowered(build, normal(*shape), precision)
    narrow = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    made = [line for line in lines if "gpu_depthwise" in line]
    assert len(made) == 3 and all(f"{narrow} to" in line for line in made), lines


def cell(x: Any, h: Any, c: Any, w: Any, b: Any) -> tuple[Any, Any]:
    """An LSTM's next state."""
    i, f, g, o = gm.split(gm.bias_add(gm.matmul(gm.concat([x, h], 1), w), b), 4, 1)
    c = gm.sigmoid(f) * c + gm.sigmoid(i) * gm.tanh(g)
    return gm.sigmoid(o) * gm.tanh(c), c


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("loop", [gm.while_loop, functional_flow.while_loop], ids=["frames", "functions"])
def test_loops(loop: Callable[..., Any], precision: str) -> None:
    """Weights are copied before a loop; what a cell hands on is stored in both types."""

    def build(x: Any) -> list[Any]:
        w, b = gm.constant(normal(7, 16, seed=1) / np.float32(3)), gm.constant(normal(16, seed=2))
        w = w * gm.reduce_mean(x)  # no constant: an invariant of the loop

        def body(i: Any, h: Any, c: Any) -> Any:
            h, c = cell(x * gm.cast(i, gm.float32), h, c, w, b)
            return [i + 1, h, c]

        zeros = gm.constant(np.zeros((3, 4), np.float32))
        _, h, c = loop(lambda i, h, c: i < 4, body, [gm.constant(0), zeros, zeros])
        return [h, c]

    lines = lowered(build, normal(3, 3) + np.float32(1), precision)
    # one of what the step is given and one of the state, which are not joined for it (`loops/joined_factors`)
    assert sum("gpu_products " in line for line in lines) == 2, lines
    narrow = [line for line in lines if "gpu_narrow" in line]
    # before the loop the weights and the first state, in each iteration what is new
    assert len(narrow) == 2, lines


@pytest.mark.parametrize("loop", [gm.while_loop, functional_flow.while_loop], ids=["frames", "functions"])
def test_loops_that_learn(loop: Callable[..., Any]) -> None:
    """Losses of an LSTM go down as in float32."""
    x = normal(3, 3)
    with gm.Graph().as_default() as graph:
        w = gm.Variable(normal(7, 16, seed=1) / np.float32(3), use_resource=True)
        b = gm.Variable(np.zeros(16, np.float32), use_resource=True)
        zeros, read = gm.constant(np.zeros((3, 4), np.float32)), (w.value(), b.value())

        def body(i: Any, h: Any, c: Any) -> Any:
            return [i + 1, *cell(gm.constant(x), h, c, *read)]

        _, h, _ = loop(lambda i, h, c: i < 4, body, [gm.constant(0), zeros, zeros], maximum_iterations=4)
        loss = gm.reduce_mean(gm.square(h - normal(3, 4, seed=3)))
        step = gm.train.Momentum(0.1, 0.9).minimize(loss)
        start = gm.global_variables_initializer()
    losses: dict[str, list[Any]] = {}
    for precision in ("f32", "bf16"):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            session.run(start)
            losses[precision] = [session.run([loss, step])[0] for _ in range(6)]
            if precision == "bf16":
                lines = session.explain([loss, step])
                behind = sum("rows of all iterations, in bfloat16" in line for line in lines)
                assert sum("gpu_products" in line for line in lines) + behind >= 3, lines
    assert losses["bf16"][-1] < 0.95 * losses["bf16"][0] and losses["bf16"] != losses["f32"]
    # four iterations and their gradients, each of which rounds two factors and a result by 2**-9
    np.testing.assert_allclose(losses["bf16"], losses["f32"], rtol=24 * 2**-9)


def test_convolutions_of_volumes() -> None:
    """Three spatial axes, with both gradients."""

    def build(x: Any) -> list[Any]:
        w, v = (gm.constant(normal(2, 3, 3, 4, 4, seed=at) / np.float32(8)) for at in (1, 2))
        y = ops.tanh(ops.conv3d(x, w, strides=[1, 1, 1, 1, 1], padding="SAME"))
        z = ops.conv3d(y, v, strides=[1, 2, 2, 2, 1], padding="SAME")
        return [z, *gradients([gm.reduce_sum(gm.square(z))], [x, w, v])]

    lines = lowered(build, normal(1, 3, 4, 4, 4), "bf16")
    kinds = [sum(f" {kind} " in line for line in lines) for kind in ("gpu_convolution", "gpu_convolution_gradient")]
    assert kinds == [2, 4], lines


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_convolutions_and_norms_of_training(form: str) -> None:
    shape = (3, 6, 5, 8) if form == "NHWC" else (3, 8, 6, 5)

    def convolution(x: Any, seed: int) -> Any:
        w = gm.constant(normal(3, 3, 8, 8, seed=seed) / np.float32(9))
        return ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME", data_format=form), w

    def norm(x: Any, seed: int) -> tuple[Any, list[Any]]:
        scale, offset = gm.constant(1 + normal(8, seed=seed) * np.float32(0.1)), gm.constant(normal(8, seed=seed + 1))
        nothing = gm.constant(np.zeros(0, np.float32))
        made = ops.fused_batch_norm_v3(x, scale, offset, nothing, nothing, is_training=True, data_format=form)
        return made[0], [scale, offset]

    def build(x: Any) -> list[Any]:
        first, w = convolution(x, 1)
        y, vectors = norm(first, 2)
        second, v = convolution(gm.relu(y), 3)
        z, others = norm(second, 4)
        bias = gm.constant(normal(8, seed=7))
        z = gm.bias_add(convolution(gm.relu(z + x), 5)[0], bias, data_format=form)
        loss = gm.reduce_sum(gm.square(z) * normal(*shape, seed=9))
        return [z, *gradients([loss], [x, w, v, bias, *vectors, *others])]

    lines = lowered(build, normal(*shape), "bf16")
    kinds = [sum(f" {kind} " in line for line in lines) for kind in ("gpu_convolution_gradient", "gpu_norm_sums")]
    assert kinds == [5, 2], lines
    assert sum("bfloat16 to float32" in line for line in lines if "gpu_convolution_gradient" in line) >= 2


@pytest.mark.parametrize("precision", PRECISIONS)
def test_sums_of_a_block_s_gradient(precision: str) -> None:
    """The kernel that computes it in 16 bits adds up what it stores."""
    shape = (3, 6, 5, 8)

    def unit(x: Any, seed: int) -> tuple[Any, list[Any]]:
        w = gm.constant(normal(3, 3, 8, 8, seed=seed) / np.float32(9))
        scale, offset = gm.constant(1 + normal(8, seed=seed) * np.float32(0.1)), gm.constant(normal(8, seed=seed + 1))
        nothing = gm.constant(np.zeros(0, np.float32))
        y = ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
        return ops.fused_batch_norm_v3(y, scale, offset, nothing, nothing, is_training=True)[0], [w, scale, offset]

    def build(x: Any) -> list[Any]:
        first, of_first = unit(x, 1)
        z = gm.relu(first)
        second, of_second = unit(z, 3)
        z = gm.relu(second + z)
        third, of_third = unit(z, 5)
        y = ops.conv2d(gm.relu(third + z), normal(1, 1, 8, 4, seed=7), strides=[1, 1, 1, 1], padding="SAME")
        loss = gm.reduce_sum(y * normal(3, 6, 5, 4, seed=9))
        return [y, *gradients([loss], [x, *of_first, *of_second, *of_third])]

    lines = lowered(build, normal(*shape), precision)
    assert sum(" gpu_summed_nest " in line for line in lines) >= 1, lines


def test_a_library_that_gives_16_bits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it gives is widened."""
    known = FakeDnn.supports
    monkeypatch.setattr(FakeDnn, "supports", lambda self, of: not of.made and known(self, of))

    def build(x: Any) -> list[Any]:
        w = gm.constant(normal(3, 3, 4, 6) / np.float32(6))
        y = ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
        y = gm.bias_add(y, normal(6))
        return [y, *gradients([gm.reduce_sum(y * normal(2, 5, 4, 6, seed=2))], [x, w])]

    lowered(build, normal(2, 5, 4, 4), "bf16")


def test_without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of our own multiply 16 bits and add float32 too."""
    monkeypatch.setattr(FakeDnn, "supports", lambda self, of: False)

    def build(x: Any) -> list[Any]:
        w = gm.constant(normal(3, 3, 4, 6) / np.float32(6))
        y = ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")
        return [y, *gradients([gm.reduce_sum(y * normal(2, 5, 4, 6, seed=2))], [x, w])]

    lowered(build, normal(2, 5, 4, 4), "bf16")


def test_weights_are_copied_once_and_again_when_they_change() -> None:
    w = normal(8, 6)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 8])
        weights = gm.Variable(w, use_resource=True)
        y = gm.matmul(x, weights.value())
        double = weights.assign_add(weights.value())
        start = gm.global_variables_initializer()
    given, factor = normal(4, 8, seed=1), np.float32(1)
    with Session(graph, devices={"GPU": 1}, precision="bf16") as session:
        session.run(start)
        for step in range(10):
            found = session.run(y, {x: given})
            narrow = [each.astype(ml_dtypes.bfloat16).astype(np.float32) for each in (given, w)]
            near = tolerance.of_product(*narrow) * factor
            tolerance.assert_within(found, narrow[0] @ narrow[1] * factor, near, f"step {step}")
            if step in (3, 4, 7):
                session.run(double)
                factor *= 2
        assert any("kept while these stay" in line for line in session.explain(y, {x: given}))


def test_a_program_that_learns_copies_its_weights_in_one_launch() -> None:
    with gm.Graph().as_default() as graph:
        weights = [gm.Variable(normal(8, 8, seed=at) / np.float32(3), use_resource=True) for at in range(3)]
        y = gm.constant(normal(4, 8, seed=9))
        for each in weights:
            y = gm.relu(gm.matmul(y, each.value()))
        loss = gm.reduce_mean(gm.square(y))
        step = gm.train.Momentum(0.1, 0.9).minimize(loss)
        start = gm.global_variables_initializer()
    losses: dict[str, list[Any]] = {}
    for precision in ("f32", "bf16"):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            session.run(start)
            losses[precision] = [session.run([loss, step])[0] for _ in range(6)]
            copies = [line for line in session.explain([loss, step]) if "gpu_narrow" in line]
            if precision == "bf16":
                assert any("3 tensors as bfloat16 in one launch]" in line for line in copies), copies
    assert losses["bf16"][-1] < 0.9 * losses["bf16"][0] and losses["bf16"] != losses["f32"]
    # each of three layers and of their gradients rounds two factors and a result by 2**-9
    np.testing.assert_allclose(losses["bf16"], losses["f32"], rtol=18 * 2**-9)


def test_float16_ends_at_65504() -> None:
    """What is larger is infinity, as the manual says; bfloat16 has float32's range."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 4])
        y = gm.matmul(x, gm.constant(np.ones((4, 3), np.float32)))
    given = np.full((2, 4), 1e5, np.float32)
    for precision, wanted in (("fp16", np.inf), ("bf16", 4e5)):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            # one rounding of each factor, by half a unit of 8 bits
            np.testing.assert_allclose(session.run(y, {x: given}), wanted, rtol=2**-9)


def test_a_nan_goes_through() -> None:
    def build(x: Any) -> list[Any]:
        return [gm.matmul(gm.relu(gm.matmul(x, gm.constant(normal(4, 4)))), gm.constant(normal(4, 4, seed=1)))]

    x = normal(3, 4)
    x[1, 2] = np.nan
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [3, 4])
        (y,) = build(given)
    with Session(graph, devices={"GPU": 1}, precision="bf16") as session:
        found = session.run(y, {given: x})
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()


def test_without_products_nothing_changes() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [40])
        y = gm.tanh(x) * 2.0 + 1.0
    found = []
    for precision in ("f32", "bf16"):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            found.append(session.run(y, {x: normal(40)}))
            assert not any("bfloat16" in line for line in session.explain(y, {x: normal(40)}))
    np.testing.assert_array_equal(*found)
