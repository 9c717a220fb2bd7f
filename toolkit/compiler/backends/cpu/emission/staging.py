"""Where operations find their inputs: in the arena, copied there, or outside; and whose place an output may take."""

from __future__ import annotations

from toolkit.compiler.backends.cpu.emission.calls import keeps_inputs
from toolkit.compiler.backends.cpu.emission.operations import Pin, StagedCopy
from toolkit.compiler.backends.cpu.emission.primitives import sum_candidate
from toolkit.compiler.backends.cpu.integers.products import summed_number
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, Select
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.registry import Kind


def stage_inputs(block: Block, least: int) -> None:
    """Primitives read from the arena: what comes from elsewhere is copied there first.

    Args:
        least: bytes of a tensor from which on they are told where it is instead.
    """
    resident: set[Value] = set()
    staged: dict[tuple[Value, object], Value] = {}
    for operation in block.operations:
        if isinstance(operation, Alias):
            if operation.input in resident:
                resident.add(operation.output)
        elif operation.has(Trait.READS_ANYWHERE):
            resident.update(operation.outputs)
        elif operation.has(Trait.IN_ARENA):
            moved: dict[Value, Value] = {}
            for value in operation.inputs:
                if value in resident:
                    continue
                key = (value, operation.conditions)
                if key not in staged:
                    staged[key] = Value(value.dtype, value.shape)
                    kind = Pin if value.nbytes >= least and not value.is_constant else StagedCopy
                    outputs, steps = [staged[key]], [operation.step]
                    stage = kind(input=value, outputs=outputs, steps=steps, conditions=operation.conditions)
                    block.insert_before(operation, [stage])
                moved[value] = staged[key]
            if moved:
                operation.replace_operands(moved)
            resident.update(operation.outputs)


def alias_of(operation: Operation) -> tuple[Value, int] | None:
    """The value whose place an operation's output is, and how many bytes further on."""
    return (operation.input, operation.offset) if isinstance(operation, Alias) else None


def reusable(operation: Operation) -> list[Value]:
    """Whose storage the output may take."""
    if operation.has(Trait.REUSES_INPUT):
        return [
            value
            for value in operation.inputs
            if value.shape == operation.output.shape and value.dtype == operation.output.dtype
        ]
    candidate = summed_number(operation) or sum_candidate(operation)
    return [candidate] if candidate is not None else []


def may_expose(operation: Operation) -> bool:
    if isinstance(operation, Select):
        return True
    if isinstance(operation, Dereference | Loop):
        return False
    if any(dtype.is_ref for dtype in operation.step.node.output_types):
        return False  # the variable itself
    return operation.step.kind is Kind.PURE and not keeps_inputs(operation)
