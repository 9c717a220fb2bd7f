"""The table of elementwise ops that kernels for GPUs compute; the modules beside it fill it.

An op stands here once for each kind of number that it takes ("f" floating, "i" and "u" integers, "b" bool, "c"
complex); its types in graphs are those of TensorFlow's registrations. Writers are `write(k, *numbers, **attributes)`
and give one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import InternalError
from toolkit.kernels.gpu.primitives.element_types import number_type

WriteNumber = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class GpuOperator:
    """Attributes:
    write: (k, *numbers, **attributes) -> number.
    attributes: which of the node's it wants.
    weight: roughly how many instructions it is.
    in_double: floats are widened for it, and its result is rounded to their type.
    """

    write: WriteNumber
    attributes: tuple[str, ...] = ()
    weight: int = 1
    in_double: bool = False


GPU_OPERATORS: dict[tuple[str, str], GpuOperator] = {}
#: the input that says which kind of numbers an op is about, where that is not the first
_KIND_FROM = {"Select": 1, "SelectV2": 1}


def gpu_operator(
    *ops: str, kinds: str, attributes: tuple[str, ...] = (), weight: int = 1, in_double: bool = False
) -> Callable[[WriteNumber], WriteNumber]:
    """Register how ops of some kinds of numbers are written.

    Raises:
        InternalError: there is a way already.
    """

    def register(write: WriteNumber) -> WriteNumber:
        for op in ops:
            for kind in kinds:
                if (op, kind) in GPU_OPERATORS:
                    raise InternalError(f"there are two ways to write {op} of kind '{kind}' for GPUs")
                GPU_OPERATORS[op, kind] = GpuOperator(write, attributes, weight, in_double)
        return write

    return register


def find(op: str, inputs: Sequence[str]) -> GpuOperator | None:
    """How an op of inputs of these types (NumPy's names) is written, or None. Cast is no op of this table."""
    if not inputs:
        return None
    at = _KIND_FROM.get(op, 0)
    return GPU_OPERATORS.get((op, number_type(inputs[min(at, len(inputs) - 1)]).kind))
