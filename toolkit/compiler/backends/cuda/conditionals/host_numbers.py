"""Numbers that are computed of the host's numbers for the host are computed there.

TensorFlow keeps counters and sizes of a loop in the host's memory, but has `LogicalAnd` compute on the device: the two
comparisons that decide on another iteration of `dynamic_rnn` are copied in, their conjunction is copied out, and the
host waits for the device in each iteration. Computed on the host it says how often the loop runs before anything is
launched, so that a step is recorded without conditions, with every element of an array where the host knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.fields import operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.relations import text
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.facts import COPY_IN, COPY_OUT

Refused = Callable[[Operation], bool]


class HostNumber(Operation, mnemonic="gpu_host_number"):
    """One number of host memory that a function of NumPy computes of others.

    Attributes:
        function: its name in NumPy.
        numbers: what it takes.
    """

    function: str
    numbers: tuple[Value, ...] = operands()

    def computed_by(self) -> str | None:
        return "on the host"

    def verify(self) -> Iterator[str]:
        if any(value.shape not in ((), None) for value in (*self.numbers, self.output)):
            yield f"{text(self.output)} of more than single numbers"


def compute_on_host(block: Block, refused: Refused) -> None:
    """Compute on the host what is copied in, computed and copied out again, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            compute_on_host(region, refused)
    if any(isinstance(each, Call) and each.op == COPY_IN and each.output.shape != () for each in block.walk()):
        return  # what is copied in cannot be recorded where the host decides: the device had better do so
    for operation in block.operations:
        if isinstance(operation, Call) and operation.op == COPY_OUT:
            found = _on_host(operation.inputs[0], operation, refused)
            if found is not None:
                block.replace_value(operation.output, found)
                block.erase(operation)
    for operation in reversed(block.operations):
        is_unused = isinstance(operation, Call) and not any(value.is_needed for value in operation.outputs)
        if is_unused and (operation.op == COPY_IN or _function(operation, refused)):
            block.erase(operation)


def _on_host(value: Value, copy: Call, refused: Refused) -> Value | None:
    """What a number of the device is on the host, computed in front of the copy; None where it depends on tensors."""
    maker = value.producer
    if not isinstance(maker, Call) or maker.block is not copy.block or maker.conditions != copy.conditions:
        return None
    if maker.op == COPY_IN:
        return maker.inputs[0] if value.shape == () else None
    function = _function(maker, refused)
    if not function:
        return None
    given = [_on_host(each, copy, refused) for each in maker.inputs]
    numbers = [each for each in given if each is not None]
    if len(numbers) < len(given):
        return None
    made = Value(value.dtype, ())
    computed = HostNumber(
        function=function, numbers=tuple(numbers), outputs=[made], steps=[maker.step], conditions=copy.conditions
    )
    assert copy.block is not None
    copy.block.insert_before(copy, [computed])
    return made


def _function(operation: Operation, refused: Refused) -> str:
    """The function of NumPy that a call of truths computes; "" where it computes something else."""
    if not isinstance(operation, Call) or operation.step.deref or refused(operation) or len(operation.outputs) != 1:
        return ""
    row = ELEMENTWISE.get(operation.op)
    values = (*operation.inputs, operation.output)
    is_truth = all(value.shape == () and value.dtype is not None and value.dtype.kind == "b" for value in values)
    return row.numpy if row is not None and is_truth else ""


def launch_host_number(device: CudaDevice, operation: HostNumber) -> Any:
    """What computes it in a step."""
    function, dtype = getattr(np, operation.function), operation.output.dtype

    def compute(*numbers: Any) -> list[Any]:
        return [np.asarray(function(*numbers), dtype)]

    return compute
