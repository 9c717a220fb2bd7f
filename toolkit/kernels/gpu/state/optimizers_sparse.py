"""Sparse optimizer updates on GPUs: the rules of the dense ones, over the rows that `indices` name.

A row that is named several times is updated as often, in order. Numbers out of range, which the CPU refuses, are left
out: only the device knows them.
"""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import opdefs
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS, OptimizerRule
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.gpu.state.optimizers import REAL_TYPES, check_scalars, types_of
from toolkit.kernels.gpu.state.updates import run_rows, settled
from toolkit.kernels.registry import INDEX, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables

#: for which TensorFlow has kernels for GPUs
_ON_GPUS = ("Adadelta", "Adagrad", "AdagradV2", "Ftrl", "FtrlV2", "KerasMomentum", "ProximalAdagrad")


def _check(arrays: list[Any], grad: Any, indices: Any) -> None:
    var = arrays[0]
    if not var.ndim:
        raise InvalidArgumentError("var must be at least 1 dimensional")
    for array in arrays[1:]:
        if array.shape != var.shape:
            raise InvalidArgumentError(f"var and slot shapes differ: {list(var.shape)} {list(array.shape)}")
    if indices.ndim != 1:
        raise InvalidArgumentError("indices must be one-dimensional")
    if grad.ndim != var.ndim or grad.shape[1:] != var.shape[1:]:
        raise InvalidArgumentError(
            f"var and grad must match in all dimensions but the first: {list(var.shape)} {list(grad.shape)}"
        )
    if grad.shape[0] != indices.shape[0]:
        raise InvalidArgumentError(
            f"grad must be the same size as indices in the first dimension: {grad.shape[0]} {indices.shape[0]}"
        )


def _sparse(op: KernelNode, name: str, optimizer: OptimizerRule) -> Compute:
    device, kind = device_of(op.node), op.attr("T")
    known = op.node.op_def.attrs
    flags = {each: op.attr(each) if each in known else False for each in optimizer.attributes}
    rule, label = settled(optimizer.rule, flags), "_".join([name, *(each for each in flags if flags[each])])
    slots, gradient = optimizer.slots, optimizer.gradient
    returns_reference = op.ref_inputs[0]

    def compute(step: StepContext, *inputs: Any) -> Any:
        found = [variables.cell_of(step, target, kind) for target in inputs[:slots]]
        grad, indices = inputs[gradient], inputs[gradient + 1]
        check_scalars(op, inputs, slots, gradient, gradient + 1)
        numbers = [inputs[at] for at in range(slots, len(inputs)) if at not in (gradient, gradient + 1)]
        with variables.held(found):
            _check([cells.read(device, cell) for cell in found], grad, indices)
            if grad.size:
                arrays = [cells.writable(device, cell) for cell in found]
                width = grad.size // indices.size
                run_rows(device, label, rule, arrays, grad, indices, width, numbers, gradient - slots)
        return inputs[0] if returns_reference else None

    return compute


def _register(name: str, optimizer: OptimizerRule) -> None:
    known = [op for op in (f"SparseApply{name}", f"ResourceSparseApply{name}") if opdefs.is_known(op)]
    is_complex = name in ("Adadelta", "KerasMomentum")  # of the others TensorFlow has none for complex numbers
    types = {"T": types_of(name) if is_complex else REAL_TYPES, "Tindices": INDEX}
    kernel(*known, types=types, kind=Kind.STATEFUL, device="GPU")(lambda op: _sparse(op, name, optimizer))


for _name in _ON_GPUS:
    _register(_name, OPTIMIZERS[_name])
