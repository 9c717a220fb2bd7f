"""Moving averages of variables on GPUs, several in one launch: the arithmetic of the graph's nodes, in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.graph.dtypes import DType
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.gpu.state.rules import Rule
from toolkit.kernels.gpu.state.updates import run_together
from toolkit.kernels.resources import variables


def _moving_average(var: Any, new: Any, kept: Any, share: Any) -> None:
    """Assign(var, var * kept + new * share)."""
    var *= kept
    var += new * share


def _average_difference(var: Any, new: Any, rate: Any) -> None:
    """AssignSub(var, (var - new) * rate)."""
    var -= (var - new) * rate


#: rules by name: they change a variable by a tensor of its shape and scalars
AVERAGES: dict[str, Rule] = {"MovingAverage": _moving_average, "AverageDifference": _average_difference}


def average_together(device: CudaDevice, name: str, dtype: DType) -> Callable[..., None]:
    """What moves averages of one type by a rule; called with the step, the variables, what is averaged, scalars."""
    rule = AVERAGES[name]

    def compute(step: Any, targets: Sequence[Any], tensors: Sequence[Any], numbers: Sequence[Any]) -> None:
        found = [variables.cell_of(step, target, dtype) for target in targets]
        with variables.held(found):
            sets: list[tuple[list[Any], Any]] = []
            for cell, tensor in zip(found, tensors, strict=True):
                arrays = [cells.writable(device, cell)]
                cells.check_shapes(arrays, tensor)
                sets.append((arrays, tensor))
            run_together(device, name, rule, sets, numbers, 0)

    return compute
