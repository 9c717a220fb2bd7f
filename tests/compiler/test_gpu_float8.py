"""Products of 8-bit factors on GPUs: numbers within what e4m3 allows, and which products take it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.layers import normal
from toolkit import client as gm
from toolkit.compiler.backends.cuda.precision import float8_rules
from toolkit.compiler.backends.cuda.precision.float8_rules import HOPPER, Candidate, Pace
from toolkit.errors import UsageError
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops
#: half of the distance from 1 to the next number, and of that between the smallest two
UNIT, TINY = 2.0**-4, 2.0**-10


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launches take no time, and quantizing little: else no product pays that a test can wait for."""
    monkeypatch.setattr(float8_rules, "HOPPER", Pace(HOPPER.bytes, HOPPER.operations / 1e6, 0.0))
    with choose.using(FakeDriver()):
        yield


def lowered(build: Callable[[Any], Sequence[Any]], x: np.ndarray) -> list[str]:
    """Run a graph on the CPU in float32 and three times on a GPU (launched, recorded, replayed).

    Returns:
        what is explained of the step; of numbers that are further apart than roundings of e4m3 explain a failure, and
        of those that are bfloat16's own one too.
    """
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = list(build(given))
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    allowed = perturbation.allowed(graph, wanted, {given: x}, precision="fp8")
    with Session(graph, devices={"GPU": 1}, precision="bf16") as session:
        others = session.run(wanted, {given: x})
    with Session(graph, devices={"GPU": 1}, precision="fp8") as session:
        for _ in range(3):
            found = session.run(wanted, {given: x})
            for value, one, other, apart in zip(wanted, found, expected, allowed, strict=True):
                assert one.dtype == np.float32
                tolerance.assert_within(one, other, apart, value.name)
        assert any(not np.array_equal(one, other) for one, other in zip(found, others, strict=True))
        return session.explain(wanted, {given: x})


def _products(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if "gpu_float8_product" in line and not line.startswith("  %")]


def test_a_product_is_as_near_as_its_factors_are() -> None:
    """|a b - (a + da)(b + db)| with |da| at most half a unit of a, or of the smallest number of its tensor."""
    a, b = normal(12, 64), normal(64, 96, seed=1)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [12, 64])
        y = gm.matmul(x, gm.Variable(b, use_resource=True).value())
        start = gm.global_variables_initializer()
    off = [UNIT * np.abs(each) + TINY * np.abs(each).max() / 448 for each in (a, b)]
    far = off[0] @ np.abs(b) + np.abs(a) @ off[1] + off[0] @ off[1] + tolerance.of_product(a, b)
    with Session(graph, devices={"GPU": 1}, precision="fp8") as session:
        session.run(start)
        found = session.run(y, {x: a})
        tolerance.assert_within(found, a @ b, far, "y")
        assert len(_products(session.explain(y, {x: a}))) == 1
    # and about as far as independent roundings of 3 bits are: more than bfloat16's are together
    assert np.abs(found - a @ b).max() > 2.0**-8 * np.abs(a @ b).max()


def test_a_perceptron() -> None:
    def build(x: Any) -> list[Any]:
        for at, (rows, columns) in enumerate(((48, 64), (64, 96), (96, 32))):
            w = gm.constant(normal(rows, columns, seed=at) / np.float32(rows**0.5))
            x = gm.relu(gm.bias_add(gm.matmul(x, w), normal(columns, seed=at + 9)))
        return [x]

    lines = lowered(build, normal(8, 48))
    made = _products(lines)
    assert len(made) == 3 and sum("to bfloat16, with bias and Relu" in line for line in made) == 2, lines
    kept = [line for line in lines if "gpu_quantize" in line and not line.startswith("  %")]
    assert sum("transposed, kept while it stays" in line for line in kept) == 3 and len(kept) == 6, kept


def test_a_layer_of_a_transformer() -> None:
    """Query, key and value share what is quantized; attention stays in bfloat16."""
    width, heads, tokens = 64, 4, 8

    def norm(x: Any, seed: int) -> Any:
        mean, variance = gm.moments(x, [-1], keepdims=True)
        gamma, beta = 1 + normal(width, seed=seed) * np.float32(0.1), normal(width, seed=seed + 1)
        return gm.batch_normalization(x, mean, variance, beta, gamma, 1e-3)

    def dense(x: Any, rows: int, columns: int, seed: int) -> Any:
        w = gm.constant(normal(rows, columns, seed=seed) / np.float32(rows**0.5))
        return gm.bias_add(gm.matmul(x, w), normal(columns, seed=seed + 1) * np.float32(0.1))

    def split(x: Any) -> Any:
        return gm.transpose(gm.reshape(x, [2, tokens, heads, width // heads]), [0, 2, 1, 3])

    def build(x: Any) -> list[Any]:
        query, key, value = (split(dense(x, width, width, seed)) for seed in (1, 3, 5))
        scores = gm.softmax(gm.matmul(query, key, transpose_b=True) * np.float32(0.25))
        joined = gm.reshape(gm.transpose(gm.matmul(scores, value), [0, 2, 1, 3]), [-1, width])
        x = norm(x + dense(joined, width, width, 7), 20)
        wide = dense(x, width, 4 * width, 9)
        wide = wide * (0.5 * (1.0 + ops.erf(wide * np.float32(0.5**0.5))))
        return [norm(x + dense(wide, 4 * width, width, 11), 22)]

    lines = lowered(build, normal(2 * tokens, width))
    assert len(_products(lines)) == 6, lines
    taken = [line for line in lines if "gpu_quantize " in line and "kept" not in line and not line.startswith("  %")]
    assert len(taken) == 3 and sum("of known maxima" in line for line in taken) == 1, taken
    assert sum("gpu_quantized_nest" in line and not line.startswith("  %") for line in lines) == 1, lines


def test_products_of_two_computed_tensors_say_why_they_stay() -> None:
    def build(x: Any) -> list[Any]:
        y = gm.matmul(x, gm.constant(normal(48, 64) / np.float32(7)))
        return [gm.matmul(y, gm.tanh(y), transpose_b=True)]

    lines = lowered(build, normal(16, 48))
    assert len(_products(lines)) == 1, lines
    assert sum("stays in bfloat16: its second factor is computed by the step" in line for line in lines) == 1, lines


def test_weights_are_quantized_once_and_again_when_they_change() -> None:
    w = normal(64, 96)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 64])
        weights = gm.Variable(w, use_resource=True)
        y = gm.matmul(x, weights.value())
        double = weights.assign_add(weights.value())
        start = gm.global_variables_initializer()
    given, factor = normal(4, 64, seed=1), np.float32(1)
    with Session(graph, devices={"GPU": 1}, precision="fp8") as session:
        session.run(start)
        first = session.run(y, {x: given})
        for step in range(10):
            # a power of two changes the factor alone
            np.testing.assert_array_equal(session.run(y, {x: given}), first * factor, err_msg=f"step {step}")
            if step in (3, 4, 7):
                session.run(double)
                factor *= 2


def test_what_is_not_finite_is_seen() -> None:
    """One factor for the whole tensor: all that is made of it is NaN."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 64])
        y = gm.matmul(x, gm.constant(normal(64, 96)))
    with Session(graph, devices={"GPU": 1}, precision="fp8") as session:
        for wrong in (np.nan, np.inf):
            given = normal(4, 64)
            given[1, 2] = wrong
            assert np.isnan(session.run(y, {x: given})).all()
            assert np.isfinite(session.run(y, {x: normal(4, 64)})).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_is_seen_behind_rows(wrong: float) -> None:
    """Where the largest number of each row is found by the kernel that makes them."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 64])
        y = gm.matmul(x * gm.reduce_max(x, [-1], keepdims=True), gm.constant(normal(64, 96)))
    with Session(graph, devices={"GPU": 1}, precision="fp8") as session:
        given = normal(4, 64)
        given[1, 2] = wrong
        for _ in range(3):
            found = session.run(y, {x: given})
            assert np.isnan(found[1]).all()
        assert any("of known maxima" in line for line in session.explain(y, {x: given}))
        assert np.isfinite(session.run(y, {x: normal(4, 64)})).all()


def test_a_program_that_learns_multiplies_bfloat16() -> None:
    with gm.Graph().as_default() as graph:
        w = gm.Variable(normal(64, 96) / np.float32(8), use_resource=True)
        loss = gm.reduce_mean(gm.square(gm.matmul(gm.constant(normal(8, 64, seed=1)), w.value())))
        step = gm.train.Momentum(0.1, 0.9).minimize(loss)
        start = gm.global_variables_initializer()
    losses: dict[str, list[Any]] = {}
    for precision in ("bf16", "fp8"):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            session.run(start)
            losses[precision] = [session.run([loss, step])[0] for _ in range(3)]
            lines = session.explain([loss, step])
    assert losses["fp8"] == losses["bf16"] and not _products(lines)
    assert any("fp8: the program learns, so its products multiply bfloat16" in line for line in lines), lines


def test_a_card_without_them_is_refused() -> None:
    with (
        choose.using(FakeDriver(capability=(8, 6))),
        pytest.raises(
            UsageError,
            match=r"fp8 on .*GPU:0: the GPU has compute capability 8\.6; floats of 8 bits need 8\.9 .*use bf16",
        ),
    ):
        Session(gm.Graph(), devices={"GPU": 1}, precision="fp8")


def test_on_cpus_it_is_float32() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 64])
        y = gm.matmul(x, gm.constant(normal(64, 96)))
    found = []
    for precision in ("f32", "fp8"):
        with Session(graph, devices={"CPU": 1}, precision=precision) as session:
            found.append(session.run(y, {x: normal(4, 64)}))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "pays"),
    [
        (4096, 4096, 4096, True),  # 139 us in 16 bits
        (1, 8192, 8192, True),  # a token: all weights are read
        (1024, 768, 768, False),  # 1.3 us: less than the launches
        (4096, 256, 4096, False),  # more to quantize than to multiply
    ],
)
def test_what_pays(rows: int, columns: int, terms: int, pays: bool) -> None:
    from types import SimpleNamespace

    from toolkit.compiler.ir.value import Value
    from toolkit.kernels.tensors import BF16, F32

    operation: Any = SimpleNamespace(output=Value(BF16, (rows, columns)))
    a, b = Value(BF16, (rows, terms)), Value(F32, (terms, columns))
    found = Candidate(operation, a, b, sizes=(rows, columns, terms), leads=(terms, terms, columns))
    assert (float8_rules.refusal(found, HOPPER, lambda product: True) == "") is pays
