"""Kernels whose results are moved by chance, as far as their roundings reach, of which `tests.perturbation` tells.

A node's own roundings are estimated anew at every execution, from what goes in and what comes out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests import rounding
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS
from toolkit.kernels.resources import variables

#: exponentials, logarithms, error functions and their kin are good to a few units
_FUNCTION = 8.0

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


@functools.cache
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
        if op in _WHOLE:
            return compute
        moves = op in rounding.MOVES

        def run(*inputs: Any) -> Any:
            if not self.active or not any(map(is_rounded, inputs)):
                return compute(*inputs)
            if moves and not self.narrow and all(each.dtype == np.float32 for each in inputs if is_rounded(each)):
                return compute(*inputs)  # as the rule says, at less cost: nothing is rounded
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
        if op == "Relu6":  # what is passed on may be the gate of a hard swish, which primitives compute otherwise
            return np.zeros(value.shape, np.bool_)
        if op in _ARITHMETIC:
            same = [each for each in given if each.shape == value.shape or each.size == 1]
            return functools.reduce(np.logical_or, [np.equal(value, each) for each in same], np.equal(value, 0))
        kind = np.float32 if {each.dtype for each in (value, *given)} == {np.dtype(np.float32)} else np.complex128
        found = np.isin(np.asarray(value).astype(kind), np.concatenate([np.ravel(each).astype(kind) for each in given]))
        return found & (np.mean(found) > (_MOST if op in _SUMS else _FEW))
