"""Products of what is read step after step are one product of all steps in front of the loop.

A recurrent cell multiplies what the step is given and its state, one beside the other, with one matrix:
`concat([x, h]) @ w`. That is `x @ w[:n] + h @ w[n:]`, and of the first nothing depends on the iterations before: for
all steps at once it is a large product, whose rows the loop reads. What is left in the loop is the state's product, and
nothing is put side by side. So it is of a cell that multiplies what it is given by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.layout.moved_axes import number_of, numbers_of
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_number, host_numbers
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import changes_variables
from toolkit.compiler.ir.list_facts import ListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, call_of
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
_BIASES = ("BiasAdd", "BiasAddV1")
#: axes of a matrix, of what all steps are given, and what a concatenation of two takes
_MATRIX, _STEPS, _TWO = 2, 3, 3


@dataclass
class _Read:
    """What an iteration reads of all steps.

    Attributes:
        call: what reads.
        rows: float32 [steps, batch, inputs], all that is read.
        is_once: each of them may be read once only.
    """

    call: Call
    rows: Value
    is_once: bool


@dataclass
class _Found:
    """A product that can be computed for all steps.

    Attributes:
        product: the call.
        bias: what adds the bias behind it, if that comes from outside.
        read: the factor that is read.
        state: the other part of the first factor; None where there is none.
        begins: the first rows of the matrix that belong to what is read, and to the other part.
    """

    product: Call
    bias: Call | None
    read: _Read
    state: Value | None
    begins: tuple[int, int]


def hoist_products(block: Block, refused: Refused) -> None:
    """Take products of what is read step after step out of loops.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            hoist_products(region, refused)
        if isinstance(operation, Loop) and not operation.predicates and not changes_variables(operation.body):
            given = invariants_of(operation)
            for product in operation.body.operations:
                found = _found(block, operation, product, given, refused)
                if found is not None:
                    _hoist(block, operation, found, given)


def invariants_of(loop: Loop) -> dict[Value, Value]:
    """The arguments of a loop's body that are the same in all iterations, with their values outside."""
    body, count = loop.body, len(loop.states)
    found: dict[Value, Value] = {}
    for place, (argument, outer) in enumerate(zip(body.arguments, loop.inputs, strict=True)):
        if argument is not None and (place >= count or body.results[place] is argument):
            found[argument] = outer
    return found


def _outside(value: Value, given: dict[Value, Value]) -> Value | None:
    return value if value.is_constant else given.get(value)


def _is_plain(operation: Operation, refused: Refused) -> bool:
    return isinstance(operation, Call) and operation.is_plain and not refused(operation)


def _found(
    block: Block, loop: Loop, product: Operation, given: dict[Value, Value], refused: Refused
) -> _Found | None:  # fmt: skip
    """A product of what is read and of what comes from outside, if it is one."""
    if not isinstance(product, Call) or product.op != "MatMul" or not _is_plain(product, refused):
        return None
    a, w = product.inputs
    node, outer = product.step.node, _outside(w, given)
    if node.attr("transpose_a") or node.attr("transpose_b") or outer is None or outer.shape is None:
        return None
    if product.output.dtype != F32 or outer.dtype != F32 or len(outer.shape) != _MATRIX or 0 in outer.shape:
        return None
    user = product.output.sole_user
    bias = user if isinstance(user, Call) and user.op in _BIASES and _is_plain(user, refused) else None
    if bias is not None and (bias.inputs[0] is not product.output or _outside(bias.inputs[1], given) is None):
        bias = None
    if (read := _read(block, loop, a, given, refused)) is not None:
        return _Found(product, bias, read, None, (0, 0))
    joined = call_of(a, "ConcatV2")
    if joined is None or not _is_plain(joined, refused) or len(joined.inputs) != _TWO or joined.block is not loop.body:
        return None
    first, second, axis = joined.inputs
    number = number_of(axis)
    if number is None or number % _MATRIX != 1 or any(len(each.shape or ()) != _MATRIX for each in (first, second)):
        return None
    for one, other, is_first in ((first, second, True), (second, first, False)):
        read = _read(block, loop, one, given, refused)
        if read is not None and other is not one and 0 not in (other.shape or (0,)):
            width = relations.shape(first)[1]
            return _Found(product, bias, read, other, (0, width) if is_first else (width, 0))
    return None


def _read(block: Block, loop: Loop, x: Value, given: dict[Value, Value], refused: Refused) -> _Read | None:
    """What reads a matrix out of one tensor that all steps share; None where something else makes it."""
    call = x.producer
    if not isinstance(call, Call) or call.block is not loop.body or not _is_plain(call, refused):
        return None
    is_once = False
    if call.op == "TensorArrayReadV3":
        handle, flow = _outside(call.inputs[0], given), _outside(call.inputs[2], given)
        made = None if handle is None else call_of(handle, "TensorArrayV3")
        filled = None if flow is None else call_of(flow, "TensorArrayScatterV3")
        if made is None or filled is None or filled.inputs[0] is not handle or made.block is not block:
            return None
        rows, places = filled.inputs[2], numbers_of(filled.inputs[1])
        if rows.shape is None or places != tuple(range(rows.shape[0])):
            return None
        if number_of(made.inputs[0]) != rows.shape[0]:
            return None  # what nobody wrote is read as zeros
        is_once = bool(made.step.node.attr("clear_after_read", True))
    elif call.op == "TensorListGetItem":
        held = _outside(call.inputs[0], given)
        filled = None if held is None else call_of(held, "TensorListFromTensor")
        if filled is None:
            return None
        rows = filled.inputs[0]
    else:
        return None
    shape = rows.shape
    if filled.block is not block or not filled.is_plain or rows.dtype != F32 or shape is None:
        return None
    fits = len(shape) == _STEPS and 0 not in shape and x.shape == shape[1:]
    return _Read(call, rows, is_once) if fits else None


def _hoist(block: Block, loop: Loop, found: _Found, given: dict[Value, Value]) -> None:
    """Compute a product for all steps in front of a loop, and read its rows in the loop."""
    product, read, body = found.product, found.read, loop.body
    w = product.inputs[1]
    outer = w if w.is_constant else given[w]
    steps, batch, inputs = relations.shape(read.rows)
    columns = relations.shape(outer)[1]
    nodes, kind = MadeNodes(product), dtypes.float32
    made: list[Call] = []

    def call(op: str, name: str, taken: list[Value], shape: tuple[int, ...], **attributes: object) -> Value:
        value = Value(F32, shape)
        made.append(nodes.call(op, name, taken, [value], attributes))
        return value

    def rows_of_matrix(begin: int, count: int, name: str) -> Value:
        if count == relations.shape(outer)[0]:
            return outer
        taken = [outer, host_numbers(begin, 0), host_numbers(count, columns)]
        return call("Slice", name, taken, (count, columns), T=kind, Index=dtypes.int32)

    def shaped(value: Value, shape: tuple[int, ...], name: str) -> Value:
        return call("Reshape", name, [value, host_numbers(*shape)], shape, T=kind, Tshape=dtypes.int32)

    flat = shaped(read.rows, (steps * batch, inputs), "all_steps")
    every = call("MatMul", "of_all_steps", [flat, rows_of_matrix(found.begins[0], inputs, "rows")],
                 (steps * batch, columns), T=kind, transpose_a=False, transpose_b=False)  # fmt: skip
    if found.bias is not None:
        vector = _outside(found.bias.inputs[1], given)
        assert vector is not None
        every = call("BiasAdd", "biased", [every, vector], (steps * batch, columns), T=kind, data_format="NHWC")
    every = shaped(every, (steps, batch, columns), "of_each_step")
    kept, handed = _kept(nodes, read, every, made)
    state_rows = None
    if found.state is not None:
        state_rows = rows_of_matrix(found.begins[1], relations.shape(found.state)[1], "rows_of_state")
    block.insert_before(loop, made)
    inner = [argument_for(loop, value, given) for value in handed]
    taken = Value(F32, (batch, columns))
    index, shape = read.call.inputs[1], host_numbers(batch, columns)
    operands = [inner[0], index, inner[1]] if kept == "TensorArrayReadV3" else [inner[0], index, shape]
    types = {"dtype": kind} if kept == "TensorArrayReadV3" else {"element_dtype": kind}
    last = found.product if found.bias is None else found.bias
    added: list[Operation] = [nodes.call(kept, "step", operands, [taken], types)]
    if state_rows is not None and found.state is not None:
        matrix = state_rows if state_rows.is_constant else argument_for(loop, state_rows, given)
        own = Value(F32, (batch, columns))
        added.append(nodes.call("MatMul", "of_state", [found.state, matrix], [own],
                                {"T": kind, "transpose_a": False, "transpose_b": False}))  # fmt: skip
        total = Value(F32, (batch, columns))
        added.append(nodes.call("AddV2", "both", [taken, own], [total], {"T": kind}))
        taken = total
    body.insert_before(last, added)
    joined = product.inputs[0].producer if found.state is not None else None
    body.replace_value(last.output, taken)
    body.remove({last, product})
    for unused in (joined, read.call):
        if unused is not None and not any(value.is_needed for value in unused.outputs):
            body.erase(unused)


def _kept(nodes: MadeNodes, read: _Read, every: Value, made: list[Call]) -> tuple[str, list[Value]]:
    """Rows of all steps, kept as those that are read are: the op that reads one, and what it takes."""
    steps, *element = relations.shape(every)
    kind, facts = dtypes.float32, ListFacts(tuple(element), False, None)
    if read.call.op == "TensorListGetItem":
        held = Value(None, None)
        held.facts = ListFacts(tuple(element), False, steps)
        attributes = {"element_dtype": kind, "shape_type": dtypes.int32}
        made.append(nodes.call("TensorListFromTensor", "list", [every, host_numbers(*element)], [held], attributes))
        return read.call.op, [held]
    handle, flow, filled = Value(None, (2,)), Value(F32, ()), Value(F32, ())
    handle.facts = facts
    attributes = {"dtype": kind, "element_shape": Shape(element), "dynamic_size": False,
                  "clear_after_read": read.is_once, "identical_element_shapes": True,
                  "tensor_array_name": ""}  # fmt: skip
    made.append(nodes.call("TensorArrayV3", "array", [host_number(steps)], [handle, flow], attributes))
    taken = [handle, host_numbers(*range(steps)), every, flow]
    made.append(nodes.call("TensorArrayScatterV3", "filled", taken, [filled], {"T": kind}))
    return read.call.op, [handle, filled]


def argument_for(loop: Loop, outer: Value, given: dict[Value, Value]) -> Value:
    """What an iteration takes for a value from outside."""
    for argument, known in given.items():
        if known is outer:
            return argument
    argument = Value(outer.dtype, outer.shape)
    argument.facts = outer.facts
    loop.invariants = (*loop.invariants, outer)
    loop.body.arguments.append(argument)
    given[argument] = outer
    return argument
