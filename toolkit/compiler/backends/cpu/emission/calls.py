"""Lines of the generated function that are not primitives: kernels, branches, loops, variables, outside tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.operations import Pin
from toolkit.compiler.backends.python import outputs_of, value_of
from toolkit.compiler.importer.effects import ASSIGNS
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, ReadVariable, Select, Test
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.registry import Kind
from toolkit.kernels.resources import variables


def write_kernel(emitter: Emitter, operation: Operation) -> None:
    """Call the node's own kernel."""
    step = operation.step
    function = emitter.share("f", step.compute)
    stateful = step.kind is Kind.STATEFUL
    inputs = [emitter.read_owned(v) if keeps_inputs(operation) else emitter.read(v) for v in operation.inputs]
    # numbers travel as numpy's scalars, kernels take arrays
    inputs = [
        f"array({text})" if value.shape == () and value.dtype is not None and emitter.is_local(value) else text
        for text, value in zip(inputs, operation.inputs, strict=True)
    ]
    if operation.op in ASSIGNS and emitter.ends(operation.inputs[1], operation) and operation.inputs[1].shape != ():
        given, donated = inputs[1], emitter.fresh("h")
        emitter.line(f"{donated} = {emitter.share('f', variables.Donated)}({given}); {given} = None")
        inputs[1] = donated
    if stateful:
        emitter.line("if R.is_cancelled: R.check_cancelled()")
    call = f"{function}({', '.join((['R'] if stateful else []) + inputs)})"
    outputs = operation.outputs
    if len(outputs) == 1:
        name = emitter.bind(outputs[0])
        emitter.line(f"{name} = {call}")
        checked = emitter.share("o", outputs_of(step))
        emitter.line(f"if {name}.__class__ in sequences: {name}, = {checked}({name})")
    elif outputs:
        checked = emitter.share("o", outputs_of(step))
        emitter.line(f"{', '.join(map(emitter.bind, outputs))} = {checked}({call})")
    else:
        emitter.line(call)


#: stateful ops that are done with their inputs when they return
_SCRATCH = ("Assign", "ResourceApply", "Apply", "ResourceScatter", "Scatter", "ResourceSparseApply", "SparseApply",
            "Random", "Stateless", "TruncatedNormal", "Assert", "Print", "Save", "Write", "ResourceGather")  # fmt: skip


def keeps_inputs(operation: Operation) -> bool:
    """Whether a kernel may hold on to its inputs after it has returned: in a queue, a list, a stack."""
    if any(value.dtype is None for value in operation.outputs):
        return True
    return operation.step.kind is Kind.STATEFUL and not operation.op.startswith(_SCRATCH)


def write_select(emitter: Emitter, operation: Select) -> None:
    """The value of the side that was taken."""
    predicate, taken, other = map(emitter.read, (operation.predicate, operation.taken, operation.other))
    emitter.line(f"{emitter.bind(operation.output)} = {taken} if {predicate} else {other}")


def write_test(emitter: Emitter, operation: Test) -> None:
    """The end of a loop."""
    emitter.line(f"if not {emitter.read(operation.condition)}: return None")


def write_loop(emitter: Emitter, operation: Loop) -> None:
    """A loop: compiled as a whole, or one iteration of it, called until it says that there are no more."""
    iteration = emitter.fresh("l")
    emitted = emitter.inner[iteration] = operation.compiled
    if emitted.is_whole:
        inputs = ", ".join(emitter.read(value) for value in operation.inputs)
        outputs = "".join(f"{emitter.bind(value)}, " for value in operation.outputs)
        emitter.line(f"{outputs or '_'} = {iteration}([{inputs}], R)")
        return
    states, invariants = (
        ", ".join(map(emitter.read_owned, values)) for values in (operation.states, operation.invariants)
    )
    count = len(operation.states)
    state, constant, after = emitter.fresh("s"), emitter.fresh("i"), emitter.fresh("t")
    emitter.line(f"{state} = [{states}]; {constant} = [{invariants}]")
    emitter.line(f"{after} = {iteration}({state} + {constant}, R)")
    emitter.line(f"while {after} is not None:")
    emitter.line("    if R.is_cancelled: R.check_cancelled()")
    emitter.line(f"    {state} = {after}; {after} = {iteration}({after} + {constant}, R)")
    if count:
        emitter.line(f"{', '.join(map(emitter.bind, operation.outputs))}{',' if count == 1 else ''} = {state}")


def write_dereference(emitter: Emitter, operation: Dereference) -> None:
    """The present value of a reference variable."""
    cell = emitter.read(operation.reference)
    name = emitter.bind(operation.output)
    emitter.line(f"{name} = {cell}.value")
    array, read = emitter.share("k", np.ndarray), emitter.share("f", value_of(operation.step))
    emitter.line(f"if {name}.__class__ is not {array}: {name} = {read}({cell})")  # None, or in a device's memory


def write_read_variable(emitter: Emitter, operation: ReadVariable) -> None:
    """The present array of a resource variable, which must have kept its shape."""
    name = emitter.bind(operation.output)
    cell, shape = emitter.share("k", operation.cell), emitter.share("k", operation.output.shape)
    emitter.line(f"{name} = {cell}.value")
    array = emitter.share("k", np.ndarray)
    emitter.line(f"if {name}.__class__ is not {array}: {name} = {emitter.share('f', variables.read)}({cell})")
    emitter.line(f"if {name}.shape != {shape}: {emitter.share('f', _unreadable)}({cell}, {name}, {shape})")


def _unreadable(cell: Any, value: Any, shape: tuple[int, ...]) -> None:
    raise InvalidArgumentError(
        f"the variable {cell.name} has shape {list(value.shape)} now, but it was declared as {list(shape)}"
    )


def write_pin(emitter: Emitter, operation: Pin) -> None:
    """Point the primitives that take a value from outside the arena to where it is."""
    value = operation.output
    source, name = emitter.read(operation.input), emitter.bind(value)
    memories = emitter.pinned[value] = emitter.fresh("p")
    shape, dtype = emitter.share("k", value.shape), emitter.share("k", value.dtype)
    emitter.line(f"{name} = contiguous({source})")
    emitter.line(f"if {name}.shape != {shape} or {name}.dtype != {dtype}: mismatch({name}, {shape}, {dtype})")
    emitter.line(f"point({memories}, {name})")
