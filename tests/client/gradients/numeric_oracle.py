"""Gradients against central differences: the slope of a row's function along random directions, first and second order.

A row's function is made one number, L = sum of w (y + y^2 / 2) over its outputs with random weights w, whose gradients
by an op that is linear still depend on x. Its slope along a random direction d has to be sum of g d, g the gradient of
ours; where any element of g is wrong, that sum is right for none but a set of directions of measure 0. The same is then
asked of sum of v g, for random v: its slope along d has to be that of the gradient's gradient.

How far the slope may be off: Richardson's extrapolation R(h) = (4 D(h) - D(2h)) / 3 of central differences D has an
error of c h^4 + O(h^6), so |R(2h) - R(h)| is fifteen times the error of R(h), and is allowed as it stands (P. Henrici,
"Elements of Numerical Analysis", 1964, section 12.4). Each value of L is off by some roundings of its terms and of
x, which a difference divides by h: D(h) and D(2h) weigh at most 4/3 and 1/6 of that.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests import tolerance
from tests.client.gradients.gradient_oracle import as_tensor
from tests.client.numeric_families.rows import Row
from toolkit import Session
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients import backprop
from toolkit.client.gradients.registry import find
from toolkit.errors import GraphError

#: the step: R's error is then near that of rounding, u / h = h^4
STEPS = {"float64": 2.0**-10, "float32": 2.0**-5}
#: roundings, one on top of the other, in a value: rows are small, their longest sums have a hundred terms
ROUNDINGS = {"float64": 1024, "float32": 64}
#: what a wrong gradient is off by, in parts of its terms, to be noticed at least
NOTICED = {"float64": 1e-5, "float32": 2e-2}
#: how many directions: a wrong gradient is right along none of them
DIRECTIONS = 1


@dataclass(frozen=True)
class Checked:
    """What a row was: the ops whose gradient functions were called, and whether its second order was compared."""

    ops: frozenset[str]
    second: bool


@dataclass(frozen=True)
class _Slope:
    """A number, and its gradients by the tensors that stand for what is moved."""

    order: str
    value: Tensor
    grads: list[tuple[Tensor, Tensor]]


def check(row: Row, seed: int) -> Checked:
    """Compare a row's gradients, and the gradients of these where all ops on the way have one.

    Raises:
        AssertionError: a gradient is not the slope, or the differences are too rough to tell.
    """
    rng = np.random.default_rng(seed)
    graph = gm.Graph()
    called: set[str] = set()
    with graph.as_default():
        fed = [gm.placeholder(f.dtype, f.shape, name=f"x{i}") for i, f in enumerate(row.feeds)]
        xs: list[Any] = list(fed)
        for i in range(row.variables):
            xs[i] = gm.Variable(np.zeros_like(row.feeds[i]), use_resource=True)
        loads = [x.assign(place) for x, place in zip(xs, fed[: row.variables], strict=False)]
        made: Any = row.build(*xs)
        results: list[Tensor] = list(made) if isinstance(made, list | tuple) else [made]  # type: ignore[arg-type]
        ys = [y for y in results if y.dtype.base.kind in "fc"]
        given = {place.name: np.array(f) for place, f in zip(fed, row.feeds, strict=True)}
        run = _Runner(Session(graph), loads)
        loss = _weighted(ys, rng, run, given, curved=True)
        moved = {x: place for x, place in zip(xs, fed, strict=True) if place.dtype.base.kind in "fc"}
        with _listening(called):
            first = _gradients(loss, moved)
        assert bool(first) != row.nothing, "a gradient arrives" if first else "no gradient reaches an input"
        if not first:
            return Checked(frozenset(called), False)
        slopes = [_Slope("first", loss, first)]
        if not row.first_only:
            turned = _weighted([g for _, g in first], rng, run, given, curved=False)
            second = _second(turned, {x: place for x, place in moved.items() if place in dict(first)})
            slopes += [_Slope("second", turned, second)] if second else []
    _compare(run, given, slopes, [place for place, _ in first], rng, row)
    return Checked(frozenset(called), len(slopes) > 1)


class _Runner:
    """A session that gives variables their values before each run."""

    def __init__(self, session: Session, loads: Sequence[Any]):
        self.session = session
        self.loads = loads

    def __call__(self, fetches: Any, given: dict[str, Any]) -> Any:
        if self.loads:
            self.session.run(self.loads, given)
        return self.session.run(fetches, given)


def _weighted(
    ys: Sequence[Tensor], rng: np.random.Generator, run: _Runner, given: dict[str, Any], curved: bool
) -> Tensor:
    """sum of w (y + y^2 / 2), or of w y; complex numbers as pairs."""
    terms: list[Tensor] = []
    for y in ys:
        known = y.static_shape
        sizes: Any = known.as_list() if known.is_fully_defined else np.shape(run(y, given))
        parts = [y]
        if y.dtype.base.kind == "c":
            real = "float64" if y.dtype.base.name == "complex128" else "float32"
            parts = [ops.real(y, Tout=real), ops.imag(y, Tout=real)]
        for part in parts:
            w = gm.constant(_either_sign(rng, sizes).astype(part.dtype.base.numpy))
            terms.append(gm.reduce_sum(w * (part + part * part * 0.5 if curved else part)))
    assert terms, "no output has a type with gradients"
    return gm.add_n(terms)


def _either_sign(rng: np.random.Generator, sizes: Any) -> Any:
    signs: Any = rng.choice([-1.0, 1.0], sizes)
    return np.asarray(rng.uniform(0.5, 1.0, sizes) * signs)


def _gradients(value: Tensor, moved: dict[Any, Tensor]) -> list[tuple[Tensor, Tensor]]:
    grads = gm.grad(value, [*moved])
    pairs = [(place, as_tensor(g)) for place, g in zip(moved.values(), grads, strict=True)]
    return [(place, g) for place, g in pairs if g is not None]


def _second(turned: Tensor, moved: dict[Any, Tensor]) -> list[tuple[Tensor, Tensor]]:
    try:
        return _gradients(turned, moved)
    except GraphError as error:
        # what lacks a gradient here lacks it in TensorFlow (test_gradient_families compares the registries)
        if "has no gradient" in str(error):
            return []
        raise


@contextmanager
def _listening(called: set[str]) -> Generator[None]:
    """Notes the ops whose gradient functions are called."""

    def listening(op: Any) -> Any:
        called.add(op.type)
        return find(op)

    backprop.find = listening
    try:
        yield
    finally:
        backprop.find = find


def _dot(a: Any, b: Any) -> float:
    product: Any = np.conj(a) * b
    return float(np.sum(product.real))


def _compare(
    run: _Runner,
    given: dict[str, Any],
    slopes: list[_Slope],
    moved: list[Tensor],
    rng: np.random.Generator,
    row: Row,
) -> None:
    kind = "float32" if row.single else "float64"
    step = STEPS[kind]
    fetches = [[slope.value, [g for _, g in slope.grads]] for slope in slopes]
    here = run(fetches, given)
    for _ in range(DIRECTIONS):
        directions: dict[str, Any] = {}
        for x in moved:
            d = _either_sign(rng, given[x.name].shape)
            if x.dtype.base.kind == "c":
                d = d + 1j * _either_sign(rng, d.shape)
            directions[x.name] = d.astype(x.dtype.base.numpy)
        ends = {
            k: run(fetches, {n: v + k * step * directions[n] if n in directions else v for n, v in given.items()})
            for k in (-4, -2, -1, 1, 2, 4)
        }
        for i, slope in enumerate(slopes):
            values = {k: float(end[i][0]) for k, end in ends.items()}
            d1, d2, d4 = ((values[k] - values[-k]) / (2 * k * step) for k in (1, 2, 4))
            wanted, coarse = (4 * d1 - d2) / 3, (4 * d2 - d4) / 3
            pairs = [(given[x.name], directions[x.name], g) for (x, _), g in zip(slope.grads, here[i][1], strict=True)]
            found = sum(_dot(g, d) for _, d, g in pairs)
            terms = sum(float(np.sum(np.abs(g * d))) for _, d, g in pairs)
            size = max(map(abs, values.values())) + terms + sum(float(np.sum(np.abs(g * x))) for x, _, g in pairs)
            rounding = 1.5 * row.inaccurate * ROUNDINGS[kind] * tolerance.unit(kind) * size / step
            allowed = abs(wanted - coarse) + rounding
            assert abs(found - wanted) <= allowed, f"{slope.order} order: {found}, differences {wanted} +- {allowed}"
            rough = f"{slope.order} order: differences are good to {allowed} only, of {terms}"
            assert allowed <= NOTICED[kind] * max(terms, 1.0), rough
