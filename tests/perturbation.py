"""How far two computations of a graph may be apart, measured: rounding errors are made larger than life by chance.

The graph is run node by node with its definitions, again and again; each time every number that a node computes is
moved by chance, as far as that node's roundings reach, and the fetches' deviations from the run without are taken
together (D. S. Parker, "Monte Carlo Arithmetic", 1997). Cancellation, ill-conditioned matrices, loops, functions and
gradients need no rules that way, and any float type will do. `tests.rounding` derives the same for the nodes it knows.

How far the roundings of a node reach, as a root of the mean square (u from `tests.tolerance.unit`):

- a number that stands among the node's inputs was moved, chosen or compared, and none that is not finite was rounded,
  nor a 0 but where products cancel, nor what is whole and made of whole numbers: exact, which also keeps ties what
  they are;
- what `tests.rounding` has a rule for, of float32: the rule, of exact inputs;
- a sum of n products: sqrt(n) u times the sum of the absolute products (Higham, "Accuracy and Stability", section 3.1);
- arithmetic of each number by itself: u times the number;
- a decomposition, a solution and their kin: that of inputs which are off by n u times their largest number, for n
  numbers (backward stability; Higham, chapters 9, 10 and 19), where their output is not known better;
- a norm of a row, a softmax: n u times the largest number of the row, for rows of n; pixels of a resized image: that of
  the largest pixel, for sides of n pixels;
- anything else: n u times the largest number of the output, for n numbers in the largest input, and never less than
  what the approximation of a function is good to;
- an optimizer's rule: what goes in, variables and slots, and what comes out are off by u times each.

A result below the smallest number with all digits may be taken as 0.

Where products are made of factors in bfloat16 or float16 (`precision="bf16"`, "fp16"), each factor is off by that
type's u, and so is each number that is kept in it; sums stay sums in float32 (`graphmill help numerics`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import rounding, tolerance
from toolkit.graph.node import Node
from toolkit.kernels import registry, variables
from toolkit.kernels.cpu.optimizers_dense import OPTIMIZERS
from toolkit.runtime.session import Session

#: runs with other roundings: that 12 of them show less than a fifth of the deviation has a chance of 1e-6 a number,
#: and what is allowed is eleven times what two computations are apart on average
_RUNS = 12
#: enough for the largest of many numbers: that three of them show less than a fifth in 4 runs has a chance of 3e-8
_FEW_RUNS = 4
#: exponentials, logarithms, error functions and their kin are good to a few units
_FUNCTION = 8.0

#: types of factors, by the precision
_NARROW: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16}

_ARITHMETIC = frozenset(
    (
        "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "MulNoNan", "Square", "Sqrt", "SquaredDifference",
        "Reciprocal", "Inv", "BiasAdd", "BiasAddV1", "Complex", "ReluGrad", "LeakyRelu", "LeakyReluGrad",
    )
)  # fmt: skip
_SUMS = frozenset(
    (
        "AddN", "MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "Conv2D", "DepthwiseConv2dNative", "Conv3D",
        "Conv2DBackpropInput", "Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "Conv3DBackpropInputV2",
        "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter", "Sum", "Mean", "AvgPool", "AvgPool3D",
        "AvgPoolGrad", "AvgPool3DGrad", "BiasAddGrad", "SegmentSum", "UnsortedSegmentSum", "SparseTensorDenseMatMul",
        "SparseMatMul", "TridiagonalMatMul", "Cumsum",
    )
)  # fmt: skip
#: numbers of each row by themselves, and of each image
_OF_ROWS = frozenset(("LRN", "LRNGrad", "Softmax", "LogSoftmax"))
_OF_IMAGES = frozenset(("ResizeBilinear", "ResizeBilinearGrad", "ResizeBicubic"))
#: parts of a tensor: what more than a few of have was not made by chance, of sums what most have
_FEW, _MOST = 0.01, 0.5
_WHOLE = frozenset(("Ceil", "Floor", "Round", "Rint", "Sign", "FloorDiv"))
_UPDATES = frozenset(f"{kind}Apply{name}" for name in OPTIMIZERS for kind in ("", "Resource"))
#: decompositions, solutions and their kin
BACKWARD_STABLE = frozenset(
    (
        "Cholesky", "MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixSolveLs",
        "MatrixTriangularSolve", "BandedTriangularSolve", "TridiagonalSolve", "Qr", "Svd", "SelfAdjointEigV2", "Eig",
        "MatrixSquareRoot",
    )
)  # fmt: skip


def info(dtype: Any) -> Any:
    """What is known of a type of floats; of complex numbers that of their parts."""
    return ml_dtypes.finfo(np.zeros(0, dtype).real.dtype if np.dtype(dtype).kind == "c" else dtype)


def unit(dtype: Any) -> float:
    """As `tolerance.unit`; of complex numbers that of their parts."""
    return float(info(dtype).eps) / 2


def wide(dtype: Any) -> Any:
    """The type in which numbers of a type are compared."""
    return np.complex128 if np.dtype(dtype).kind == "c" else np.float64


def noise(random: np.random.Generator, value: Any) -> Any:
    """Normal numbers of an array's shape, complex where it is."""
    made = random.standard_normal(np.shape(value))
    return made + 1j * random.standard_normal(np.shape(value)) if value.dtype.kind == "c" else made


def is_rounded(value: Any) -> bool:
    """Whether it is an array of floats or complex numbers, of any width."""
    if not isinstance(value, np.ndarray | np.generic):
        return False
    return value.dtype.kind in "fc" or (value.dtype.kind == "V" and _is_narrow(value.dtype))


def _is_narrow(dtype: Any) -> bool:
    try:
        ml_dtypes.finfo(dtype)
    except ValueError:
        return False
    return True


def _is_whole(value: Any) -> Any:
    """Where numbers are whole and so small that no sum or product of a few of them is rounded."""
    return (value == np.round(value)) & (np.abs(value) < 2 / unit(value.dtype) ** 0.5)


class Perturbed:
    """The kernels of a session, with numbers moved while `active`."""

    def __init__(self, narrow: Any = None) -> None:
        self.active = False
        self.narrow = 0.0 if narrow is None else unit(narrow)
        self.has_state = False  # then each run has a session of its own, whose seeds and variables start anew
        self.random = np.random.default_rng(0)
        self._get = registry.get

    def get(self, node: Node, *arguments: Any, **settings: Any) -> registry.Kernel:
        """In the place of `registry.get`."""
        entry = self._get(node, *arguments, **settings)
        if entry.kind is not registry.Kind.PURE:
            self.has_state = True
            return self._updating(entry) if node.op in _UPDATES else entry

        def factory(op: Any) -> Callable[..., Any]:
            return self._moving(node.op, entry.factory(op))

        return dataclasses.replace(entry, factory=factory)

    def _updating(self, entry: registry.Kernel) -> registry.Kernel:
        def make(op: Any) -> Callable[..., Any]:
            compute, kind = entry.factory(op), op.attr("T")
            units = _FUNCTION / 2 if "Ftrl" in op.op else 1.0  # which takes roots of them

            def run(step: Any, *inputs: Any) -> Any:
                if not self.active:
                    return compute(step, *inputs)
                cells = [variables.cell_of(step, each, kind) for each in inputs if not isinstance(each, np.ndarray)]
                self._move(cells, units)
                made = compute(step, *(self._last_place(each) for each in inputs))
                self._move(cells)
                return made

            return run

        return dataclasses.replace(entry, factory=make)

    def _move(self, cells: Sequence[Any], units: float = 1.0) -> None:
        with variables.held(cells):
            for cell in cells:
                array = variables.writable(cell)
                array[...] = self._last_place(array, units)

    def _last_place(self, value: Any, units: float = 1.0) -> Any:
        return self._relative(value, units * unit(value.dtype)) if is_rounded(value) else value

    def _moving(self, op: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            if not self.active or op in _WHOLE or not any(map(is_rounded, inputs)):
                return compute(*inputs)
            with np.errstate(all="ignore"):
                size = max(each.size for each in inputs if is_rounded(each))
                if op in BACKWARD_STABLE:
                    return compute(*(self._off(each, size) if is_rounded(each) else each for each in inputs))
                if self.narrow and op in _SUMS:
                    inputs = tuple(self._relative(each, self.narrow) if is_rounded(each) else each for each in inputs)
                made = compute(*inputs)
                outputs: list[Any] = list(made) if isinstance(made, list | tuple) else [made]  # pyright: ignore[reportUnknownArgumentType]  # of anything
                reach = self._reach(op, compute, inputs, outputs)
                moved = [self._moved(op, each, far, inputs) for each, far in zip(outputs, reach, strict=True)]
            return tuple(moved) if isinstance(made, list | tuple) else moved[0]

        return run

    def _relative(self, value: Any, share: float) -> Any:
        moved = value + noise(self.random, value) * share * np.abs(value)
        return np.where(np.isfinite(value), moved, value).astype(value.dtype)

    def _off(self, value: Any, size: int) -> Any:
        reach = size * unit(value.dtype) * np.abs(value).max(initial=0.0)
        moved: Any = value + noise(self.random, value) * reach
        return moved.astype(value.dtype)

    def _reach(self, op: str, compute: Callable[..., Any], inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """How far each output's numbers may be off."""
        if all(each.dtype == np.float32 for each in (*inputs, *outputs) if is_rounded(each)):
            known = rounding.own(op, compute, inputs, outputs)
            if known is not None:
                return [self._kept(each, reach) for each, reach in zip(outputs, known, strict=True)]
        if op in _SUMS:
            of = [[np.abs(each).astype(each.dtype) if is_rounded(each) else each for each in inputs]]
            of.append([np.ones_like(each) if is_rounded(each) else each for each in inputs])
            sizes, counts = (compute(*each) for each in of)
            if not isinstance(sizes, list | tuple) and is_rounded(outputs[0]):
                # a mean gives 1 of ones: then no number is made of more than there are in the input
                count = max(float(np.abs(counts).max(initial=1)), 1.0)
                if op in ("Mean", "AvgPool", "AvgPool3D", "AvgPoolGrad", "AvgPool3DGrad"):
                    count = max(each.size for each in inputs if is_rounded(each))
                return [math.sqrt(count) * unit(outputs[0].dtype) * np.abs(sizes)]
        reaches: list[Any] = []
        for each in outputs:
            if not is_rounded(each):
                reaches.append(0.0)
            elif op in _ARITHMETIC:
                reaches.append(unit(each.dtype) * np.abs(each))
            elif op in _OF_ROWS and each.ndim:
                largest = np.abs(each).max(-1, keepdims=True, initial=1.0 if op == "LogSoftmax" else 0.0)
                reaches.append((_FUNCTION + each.shape[-1]) * unit(each.dtype) * np.broadcast_to(largest, each.shape))
            elif op in _OF_IMAGES:
                # weights are differences of places, which are as large as a side is long
                side = max(*each.shape[1:3], *inputs[0].shape[1:3])
                reaches.append(side * unit(each.dtype) * max(np.abs(i).max(initial=0.0) for i in (each, inputs[0])))
            else:
                finite = np.abs(each)[np.isfinite(each)]
                n = max(_FUNCTION, *(i.size for i in inputs if is_rounded(i)))
                reaches.append(n * unit(each.dtype) * (finite.max() if finite.size else 0.0))
        return reaches

    def _kept(self, value: Any, reach: Any) -> Any:
        return np.maximum(reach, self.narrow * np.abs(value)) if self.narrow and is_rounded(value) else reach

    def _moved(self, op: str, value: Any, reach: Any, inputs: Sequence[Any]) -> Any:
        if not is_rounded(value) or not value.size or not np.any(reach):
            return value
        zero = value == 0
        exact = ~np.isfinite(value) | (self._found(op, value, inputs) & ~zero)
        exact |= zero & (np.equal(reach, 0) if op in _SUMS else True)
        if op in _ARITHMETIC | _SUMS and all(_is_whole(each).all() for each in inputs if is_rounded(each)):
            exact |= _is_whole(value)
        sizes = np.abs(value)
        reach = np.where((sizes < float(info(value.dtype).tiny)) & ~zero, sizes, reach)
        return np.where(exact, value, value + noise(self.random, value) * reach).astype(value.dtype)

    @staticmethod
    def _found(op: str, value: Any, inputs: Sequence[Any]) -> Any:
        """Which numbers stand among the inputs: at the same place, or where not just a few do, by chance."""
        given = [each for each in inputs if is_rounded(each)]
        if op in _ARITHMETIC:
            same = [each for each in given if each.shape == value.shape or each.size == 1]
            return np.any([np.equal(value, each) for each in (*same, np.zeros_like(value))], axis=0)
        kind = np.float32 if {each.dtype for each in (value, *given)} == {np.dtype(np.float32)} else np.complex128
        found = np.isin(np.asarray(value).astype(kind), np.concatenate([np.ravel(each).astype(kind) for each in given]))
        return found & (np.mean(found) > (_MOST if op in _SUMS else _FEW))


def allowed(
    graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any], before: Sequence[Any] = (), **session: Any
) -> list[Any]:
    """How far two computations of the fetches may be apart; 0 for what is no float.

    Args:
        before: operations that are run first, every time in a session of their own.
        session: settings of the session.

    Returns:
        For each fetch an array of its shape.
    """

    def work(running: Session, *, first: bool) -> list[Any]:
        for name in before if first else ():
            running.run(name)
        return running.run(list(fetches), feeds)

    return _of_runs(graph, work, anew=bool(before), **session)


def of_work(graph: Any, work: Callable[[Session], list[Any]], *, precision: str = "exact", **session: Any) -> list[Any]:
    """As `allowed`, of whatever is done with a session that is new each time.

    Args:
        work: gives numbers.
        precision: in which they were computed.
    """
    return _of_runs(graph, lambda running, **_: work(running), anew=True, precision=precision, **session)


def of_network(graph: Any, work: Callable[[Session], list[Any]]) -> list[Any]:
    """As `of_work` for large graphs, of fewer runs: each number may be as far off as its tensor's furthest."""
    far = _of_runs(graph, lambda running, **_: work(running), anew=False, count=_FEW_RUNS)
    return [np.max(each, initial=0.0) for each in far]


def _of_runs(
    graph: Any,
    work: Callable[..., list[Any]],
    *,
    anew: bool,
    precision: str = "exact",
    count: int = _RUNS,
    **session: Any,
) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        perturbed = Perturbed(_NARROW.get(precision))
        patch.setattr(registry, "get", perturbed.get)
        patch.setenv("GRAPHMILL_SEGMENTS", "off")  # compiled, what NumPy computes is not asked of kernels
        running: list[Session] = []

        def run() -> list[Any]:
            first = not running or anew or perturbed.has_state
            if first:
                running.append(Session(graph, precision="exact", **session))
            return work(running[-1], first=first)

        try:
            plain = run()
            perturbed.active = True
            runs = [run() for _ in range(count)]
        finally:
            for each in running:
                each.close()
    return [
        from_runs(one, others, perturbed.narrow) for one, others in zip(plain, zip(*runs, strict=True), strict=True)
    ]


def assert_close(
    graph: Any,
    fetches: Sequence[Any],
    feeds: Mapping[Any, Any],
    results: Sequence[Sequence[Any]],
    before: Sequence[Any] = (),
    **session: Any,
) -> None:
    """Raise AssertionError unless two computations of fetches are as near to each other as `allowed` says.

    Args:
        results: for each computation the values of the fetches.
    """
    assert_agree(results, lambda: allowed(graph, fetches, feeds, before, **session), [str(each) for each in fetches])


def assert_agree(results: Sequence[Sequence[Any]], far: Callable[[], Sequence[Any]], names: Sequence[str] = ()) -> None:
    """Raise AssertionError unless every computation is near the last one.

    Args:
        results: for each computation its values; what is no float must be the same.
        far: how far each value may be off, asked where last roundings do not explain what there is.
        names: of the values.
    """
    *others, wanted = results
    names = names or [str(index) for index in range(len(wanted))]
    for got in others:
        for name, mine, other in zip(names, got, wanted, strict=True):
            a, b = np.asarray(mine), np.asarray(other)
            assert a.dtype == b.dtype and a.shape == b.shape, f"{name}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
            if not is_rounded(b):
                np.testing.assert_array_equal(a, b, err_msg=name)
    if all(is_within_last_rounding(a, b) for got in others for a, b in zip(got, wanted, strict=True)):
        return
    reaches = far()
    for got in others:
        for name, mine, other, reach in zip(names, got, wanted, reaches, strict=True):
            if is_rounded(np.asarray(other)):
                tolerance.assert_within(mine, other, reach, name)


def is_within_last_rounding(mine: Any, other: Any) -> bool:
    """Whether two computations differ by what any may: part of what is allowed, and known at once."""
    if not is_rounded(other):
        return bool(np.array_equal(mine, other))
    a, b = np.asarray(mine).astype(wide(other.dtype)), np.asarray(other).astype(wide(other.dtype))
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= tolerance.LIKELY * unit(other.dtype) * np.abs(b)
    return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())


def from_runs(plain: Any, others: Sequence[Any], narrow: float = 0.0) -> Any:
    """What is allowed, from values with and without noise.

    Args:
        narrow: the unit of what they were kept in, where that has fewer digits.
    """
    plain = np.asarray(plain)
    if not is_rounded(plain):
        return 0.0
    exact = plain.astype(wide(plain.dtype))
    # a size that hangs on a rounding is another one in some of them; the size itself is compared exactly
    others = [each for each in others if np.shape(each) == plain.shape]
    assert others, f"no run but the first gives the shape {plain.shape}"
    with np.errstate(all="ignore"):
        squares = [np.square(np.abs(np.asarray(each).astype(exact.dtype) - exact)) for each in others]
        mean = np.sqrt(np.nan_to_num(sum(squares) / len(squares), nan=0.0))
        own = max(unit(plain.dtype), narrow) * np.abs(exact)
    smallest = float(info(plain.dtype).tiny)
    return 2 * tolerance.LIKELY * (mean + np.nan_to_num(own, nan=0.0, posinf=0.0) + smallest)
