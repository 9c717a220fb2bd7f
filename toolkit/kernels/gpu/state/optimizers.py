"""Dense optimizer updates on GPUs: the CPU's rules (`toolkit.kernels.cpu.state.optimizers_dense`), one kernel each.

The variable and its slots are changed in place; hyperparameters are read by the kernel, from the device's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS, OptimizerRule
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.gpu.state.updates import run_dense, run_together, settled
from toolkit.kernels.registry import COMPLEX, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables

#: for which of the rules TensorFlow has kernels for GPUs
_ON_GPUS = (
    "AdaMax", "Adadelta", "Adagrad", "AdagradV2", "Adam", "AdamWithAmsgrad", "AddSign", "CenteredRMSProp", "Ftrl",
    "FtrlV2", "GradientDescent", "KerasMomentum", "Momentum", "PowerSign", "ProximalAdagrad", "RMSProp",
)  # fmt: skip
REAL_TYPES = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})
#: those that it has for complex numbers, too
OF_COMPLEX = frozenset(
    (
        "Adadelta",
        "Adagrad",
        "AdagradV2",
        "Adam",
        "CenteredRMSProp",
        "GradientDescent",
        "KerasMomentum",
        "Momentum",
        "RMSProp",
    )
)


def types_of(name: str) -> frozenset[DType]:
    """The types of a rule's variables."""
    return REAL_TYPES | COMPLEX if name in OF_COMPLEX else REAL_TYPES


def check_scalars(op: KernelNode, inputs: Any, slots: int, *others: int) -> None:
    """Refuse hyperparameters that are not scalars.

    Raises:
        InvalidArgumentError: an input behind the slots and not among the others is none.
    """
    for position in range(slots, len(inputs)):
        if position not in others and inputs[position].shape:
            name = op.node.op_def.inputs[position].name
            raise InvalidArgumentError(f"{name} is not a scalar: {list(inputs[position].shape)}")


def _apply(op: KernelNode, name: str, optimizer: OptimizerRule) -> Compute:
    device, kind = device_of(op.node), op.attr("T")
    rule = settled(optimizer.rule, {each: op.attr(each) for each in optimizer.attributes})
    slots, gradient = optimizer.slots, optimizer.gradient
    label = "_".join([name, *(each for each in optimizer.attributes if op.attr(each))])
    returns_reference = not op.op.startswith("Resource")

    def compute(step: StepContext, *inputs: Any) -> Any:
        found = [variables.cell_of(step, target, kind) for target in inputs[:slots]]
        grad = inputs[gradient]
        check_scalars(op, inputs, slots, gradient)
        numbers = [inputs[at] for at in range(slots, len(inputs)) if at != gradient]
        with variables.held(found):
            arrays = [cells.writable(device, cell) for cell in found]
            cells.check_shapes(arrays, grad)
            run_dense(device, label, rule, arrays, grad, numbers, gradient - slots)
        return inputs[0] if returns_reference else None

    return compute


def update_together(device: CudaDevice, ops: Sequence[KernelNode]) -> Callable[..., None]:
    """What changes the variables of several nodes of one op, attributes and type by one kernel.

    It is called with the step, the variables of all nodes, their gradients, and what the rule takes besides.
    """
    first = ops[0]
    optimizer = GATHERED[first.op]
    name = first.op.removeprefix("Resource").removeprefix("Apply")
    kind = first.attr("T")
    rule = settled(optimizer.rule, {each: first.attr(each) for each in optimizer.attributes})
    slots, place = optimizer.slots, optimizer.gradient - optimizer.slots
    label = "_".join([name, *(each for each in optimizer.attributes if first.attr(each))])

    def compute(step: StepContext, targets: Sequence[Any], gradients: Sequence[Any], numbers: Sequence[Any]) -> None:
        inputs = [*targets[:slots], *numbers]
        inputs.insert(optimizer.gradient, gradients[0])
        check_scalars(first, inputs, slots, optimizer.gradient)
        found = [variables.cell_of(step, target, kind) for target in targets]
        with variables.held(found):
            sets: list[tuple[list[GpuArray], Any]] = []
            for at, gradient in enumerate(gradients):
                arrays = [cells.writable(device, cell) for cell in found[at * slots : (at + 1) * slots]]
                cells.check_shapes(arrays, gradient)
                sets.append((arrays, gradient))
            run_together(device, label, rule, sets, numbers, place)

    return compute


#: the rules that are written for many variables at once, by the op: those that look at no number
GATHERED: dict[str, OptimizerRule] = {
    f"{prefix}{name}": OPTIMIZERS[name]
    for prefix in ("Apply", "ResourceApply")
    for name in ("GradientDescent", "Momentum", "KerasMomentum", "Adam", "RMSProp", "Adagrad", "AdagradV2", "Adadelta")
    if opdefs.is_known(f"{prefix}{name}")
}


def _register(name: str, optimizer: OptimizerRule) -> None:
    known = [op for op in (f"Apply{name}", f"ResourceApply{name}") if opdefs.is_known(op)]
    kernel(*known, types={"T": types_of(name)}, kind=Kind.STATEFUL, device="GPU")(
        lambda op: _apply(op, name, optimizer)
    )


for _name in _ON_GPUS:
    _register(_name, OPTIMIZERS[_name])
