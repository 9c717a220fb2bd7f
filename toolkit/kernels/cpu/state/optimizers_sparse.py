"""Sparse optimizer updates: SparseApply* and ResourceSparseApply*.

Each takes the rules of the dense updates to the rows that `indices` name. An index that occurs several times is
updated once for each occurrence, in order, as TensorFlow's loops do.
"""

from __future__ import annotations

import functools
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import opdefs
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.native import updates
from toolkit.kernels.cpu.native.compiler import is_enabled
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS, OptimizerRule
from toolkit.kernels.cpu.state.scatter import occurrences
from toolkit.kernels.registry import COMPLEX, FLOATING, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array


def _check(arrays: list[Array], grad: Array, indices: Array, scalars: list[Array]) -> None:
    var = arrays[0]
    require(var.ndim >= 1, "var must be at least 1 dimensional")
    for array in arrays[1:]:
        if array.shape != var.shape:
            raise InvalidArgumentError(f"var and slot shapes differ: {shape_text(var)} {shape_text(array)}")
    require(indices.ndim == 1, "indices must be one-dimensional")
    for scalar in scalars:
        if np.ndim(scalar) != 0:
            raise InvalidArgumentError(f"a hyperparameter is not a scalar: {shape_text(scalar)}")
    if grad.shape[1:] != var.shape[1:] or grad.ndim != var.ndim:
        raise InvalidArgumentError(
            f"var and grad must match in all dimensions but the first: {shape_text(var)} {shape_text(grad)}"
        )
    require(
        grad.shape[0] == indices.shape[0],
        f"grad must be the same size as indices in the first dimension: {grad.shape[0]} {indices.shape[0]}",
    )
    outside = (indices < 0) | (indices >= var.shape[0])
    if outside.any():
        at = int(np.argmax(outside))
        require(False, f"Index {indices[at]} at offset {at} in indices is out of range")


def _sparse(op: KernelNode, optimizer: OptimizerRule) -> Compute:
    known = op.node.op_def.attrs
    attributes = {name: op.attr(name) if name in known else False for name in optimizer.attributes}
    rule, slots, at_gradient = optimizer.rule, optimizer.slots, optimizer.gradient
    returns_reference = op.ref_inputs[0]

    @functools.lru_cache(maxsize=16)
    def compiled(dtype: Any, width: int, ids: str) -> updates.UpdateKernel | None:
        scalars = len(op.node.op_def.inputs) - slots - 2
        return updates.sparse(rule, slots, at_gradient - slots, scalars, attributes, dtype, width, ids, op.target)

    kind = op.attr("T")

    def compute(step: StepContext, *inputs: Any) -> Any:
        cells = [variables.cell_of(step, target, kind) for target in inputs[:slots]]
        grad, indices = inputs[at_gradient], inputs[at_gradient + 1]
        rest = [*inputs[slots : at_gradient + 1], *inputs[at_gradient + 2 :]]
        place = at_gradient - slots
        with variables.held(cells):
            scalars = [value for i, value in enumerate(rest) if i != place]
            _check([variables.read(cell) for cell in cells], grad, indices, scalars)
            if indices.size:
                arrays = [variables.writable(cell) for cell in cells]
                update = None
                if grad.size >= op.target.kernels.update and is_enabled():
                    update = compiled(grad.dtype, grad.size // indices.size, indices.dtype.name)
                if update is not None:
                    update.run([*arrays, np.ascontiguousarray(grad)], scalars, np.ascontiguousarray(indices))
                    return inputs[0] if returns_reference else None
                for chosen in occurrences(indices):
                    at = indices[chosen]
                    rows = [array[at] for array in arrays]
                    rest[place] = grad[chosen]
                    rule(*rows, *rest, **attributes)
                    for array, row in zip(arrays, rows, strict=True):
                        array[at] = row
        return inputs[0] if returns_reference else None

    return compute


def _register(name: str, optimizer: OptimizerRule) -> None:
    known = [op for op in (f"SparseApply{name}", f"ResourceSparseApply{name}") if opdefs.is_known(op)]
    if known:
        kernel(*known, types={"T": FLOATING | COMPLEX}, kind=Kind.STATEFUL)(lambda op: _sparse(op, optimizer))


for _name, _optimizer in OPTIMIZERS.items():
    _register(_name, _optimizer)
