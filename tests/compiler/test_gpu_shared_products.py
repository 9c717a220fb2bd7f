"""Products with the same rows as one call on GPUs: values, changes of variables, and where nothing is put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.compiler.layers import normal
from tests.compiler.test_gpu_precision import lowered
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit import client as gm
from toolkit.compiler.backends.cuda.fusion import shared_products
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ROWS, DEPTH = 7, 24


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def _projections(columns: Sequence[int], *, bias: bool = True, weight: Any = gm.constant) -> Callable[[Any], list[Any]]:
    def build(x: Any) -> list[Any]:
        made: list[Any] = []
        for at, count in enumerate(columns):
            y = gm.matmul(x, weight(normal(DEPTH, count, seed=at) / np.float32(DEPTH**0.5)))
            made.append(gm.bias_add(y, weight(normal(count, seed=20 + at))) if bias else y)
        return made

    return build


def _run(build: Callable[[Any], list[Any]], x: np.ndarray, **how: Any) -> tuple[list[np.ndarray], list[str]]:
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = build(given)
    with Session(graph, **how) as session:
        *_, found = (session.run(wanted, {given: x}) for _ in range(3))
        return found, [line for line in session.explain(wanted, {given: x}) if "gpu_shared_products" in line]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("columns", [(16, 16, 16), (16, 5, 16, 5), (3, 3)], ids=str)
def test_bits_are_those_of_products_apart(
    columns: tuple[int, ...], bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of our own kernels: each number is the same sum, and in the library's within what sums allow."""
    x, build = normal(ROWS, DEPTH), _projections(columns, bias=bias)
    with without_libraries():
        together, lines = _run(build, x, devices={"GPU": 1})
    library, _ = _run(build, x, devices={"GPU": 1})
    assert len([line for line in lines if "of the same rows" in line]) == len(set(columns))
    monkeypatch.setattr(shared_products, "_FULL", 0)  # so that each is large enough
    with without_libraries():
        apart, none = _run(build, x, devices={"GPU": 1})
    assert not none
    for at, (one, other, third) in enumerate(zip(together, apart, library, strict=True)):
        np.testing.assert_array_equal(one, other)
        weights = normal(DEPTH, columns[at], seed=at) / np.float32(DEPTH**0.5)
        near = 2 * tolerance.of_product(x, weights) + 4 * tolerance.unit() * (np.abs(other) + 4)  # and a bias
        tolerance.assert_within(third, other, near, "the library's")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_copies_in_16_bits(precision: str) -> None:
    """Which are kept, and so are those that lie one behind the other."""
    lines = lowered(_projections((16, 16, 16)), normal(ROWS, DEPTH), precision)
    assert sum("gpu_shared_products" in line for line in lines) == 1, lines


def test_variables_that_are_changed_between_steps() -> None:
    """What was made of them is made anew."""
    x = normal(ROWS, DEPTH)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [ROWS, DEPTH])
        variables = [gm.Variable(normal(DEPTH, 8, seed=at), use_resource=True) for at in range(3)]
        wanted = [gm.matmul(given, variable) for variable in variables]
        change = [variable.assign(variable * 2.0) for variable in variables[:2]]
        initial = gm.global_variables_initializer()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(initial)
        *_, before = (session.run(wanted, {given: x}) for _ in range(3))
        session.run(change)
        *_, after = (session.run(wanted, {given: x}) for _ in range(3))
        assert any("gpu_shared_products" in line for line in session.explain(wanted, {given: x}))
    for one, other, factor in zip(before, after, (2, 2, 1), strict=True):
        np.testing.assert_array_equal(other, factor * one)


def test_plans_that_share_the_first_matrix() -> None:
    """What one plan keeps is not another's to replace: a recorded step has its address."""
    x = normal(ROWS, DEPTH)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [ROWS, DEPTH])
        variables = [gm.Variable(normal(DEPTH, 8, seed=at), use_resource=True) for at in range(4)]
        first, *others = (gm.matmul(given, variable) for variable in variables)
        initial = gm.global_variables_initializer()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(initial)
        for _ in range(2):
            for at, other in enumerate(others, 1):
                for _ in range(3):  # launched, then replayed
                    found = session.run([first, other], {given: x})
                for place, own in zip((0, at), found, strict=True):
                    weights = normal(DEPTH, 8, seed=place)
                    near = 2 * tolerance.of_product(x, weights)
                    tolerance.assert_within(own, x @ weights, near, f"matrix {place} beside matrix {at}")


@pytest.mark.parametrize("leading", [(2, 3), (1, 1, 5)], ids=str)
def test_rows_of_any_number_of_axes(leading: tuple[int, ...]) -> None:
    """A tensor with a bias is one matrix to the library; each result is aligned, however many numbers it has."""
    x = normal(*leading, DEPTH)

    def build(y: Any) -> list[Any]:
        weights = [gm.constant(normal(*[1] * (len(leading) - 1), DEPTH, 3, seed=at)) for at in range(2)]
        return [gm.relu(gm.bias_add(gm.matmul(y, each), gm.constant(normal(3)))) for each in weights]

    expected, _ = _run(build, x, devices={"CPU": 1})
    found, lines = _run(build, x, devices={"GPU": 1})
    assert any("of the same rows" in line for line in lines), lines
    for at, (one, other) in enumerate(zip(found, expected, strict=True)):
        near = 2 * tolerance.of_product(x, normal(DEPTH, 3, seed=at)) + 4 * tolerance.unit() * (np.abs(other) + 4)
        tolerance.assert_within(one, other, near, "rows")
