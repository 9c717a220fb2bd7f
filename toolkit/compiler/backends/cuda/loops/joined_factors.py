"""Products in loops of what is put side by side for them are sums of products of the parts.

A cell above another multiplies what that gives and its own state, side by side, with one matrix from outside; neither
is known before the iteration, so that no product of all steps takes it out (`time_products`). Each part is multiplied
with the rows of the matrix that belong to it, and the kernel behind adds up: nothing is copied to be joined, and what a
gradient wants are the parts, which are there anyway.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.layout.moved_axes import number_of
from toolkit.compiler.backends.cuda.loops.late_pushes import KEEP
from toolkit.compiler.backends.cuda.loops.loop_sums import decided_loops
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_numbers
from toolkit.compiler.backends.cuda.loops.time_products import argument_for, invariants_of
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import changes_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, call_of
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
#: axes of a matrix; parts that are put side by side, which are copied by as many launches
_MATRIX, _TWO = 2, 2
#: bytes that an H100 moves in the two microseconds that a launch takes at least: a second result may be so large
_BYTES_A_LAUNCH = 5 << 20


def split_factors(block: Block, refused: Refused) -> None:
    """Split products in loops whose first factor is joined of two and whose second one comes from outside.

    Args:
        refused: whether an operation must stay a call.
    """
    _split_in(block, refused, decided_loops(block))


def _split_in(block: Block, refused: Refused, decided: set[Loop]) -> None:
    for operation in block.operations:
        for region in operation.regions():
            _split_in(region, refused, decided)
        if isinstance(operation, Loop) and not operation.predicates and not changes_variables(operation.body):
            given = invariants_of(operation)
            for product in operation.body.operations:
                joined = _joined(operation, product, given, refused)
                # where the device decides, what a gradient keeps stays joined, and copied
                if joined is not None and (operation not in decided or joined.output.sole_user is product):
                    _split(block, operation, product, joined, given)


def _joined(loop: Loop, product: Operation, given: dict[Value, Value], refused: Refused) -> Call | None:
    """What puts the first factor of a product side by side, if that is for it and for a gradient alone."""
    if not isinstance(product, Call) or product.op != "MatMul" or not product.is_plain or refused(product):
        return None
    (a, w), node, out = product.inputs, product.step.node, product.output
    if node.attr("transpose_a") or node.attr("transpose_b") or w not in given or w.dtype != F32 or out.dtype != F32:
        return None
    joined = call_of(a, "ConcatV2")
    if joined is None or not joined.is_plain or refused(joined) or joined.block is not loop.body:
        return None
    *parts, axis = joined.inputs
    number = number_of(axis)
    if number is None or number % _MATRIX != 1 or len(parts) != _TWO:
        return None
    if any(value.shape is None or len(value.shape) != _MATRIX or 0 in value.shape for value in (*parts, w, out)):
        return None
    others = [user for user in a.users if user is not product]
    keeps = all(isinstance(user, Call) and user.op in KEEP for user in others)
    # what a second result is written and read for, beyond what is not joined
    more = 2 * (out.nbytes - a.nbytes)
    return joined if keeps and not a.is_result and not a.is_predicate and more <= _BYTES_A_LAUNCH else None


def _split(block: Block, loop: Loop, product: Operation, joined: Call, given: dict[Value, Value]) -> None:
    """Multiply each part with its rows of the matrix, and add up."""
    nodes, kind, outer = MadeNodes(product), dtypes.float32, given[product.inputs[1]]
    columns, begin = relations.shape(outer)[1], 0
    made: list[Call] = []
    for part, name in zip(joined.inputs[:-1], ("first", "second"), strict=True):
        count = relations.shape(part)[1]
        rows, value = Value(F32, (count, columns)), Value(F32, product.output.shape)
        sizes = [outer, host_numbers(begin, 0), host_numbers(count, columns)]
        attributes = {"T": kind, "Index": dtypes.int32}
        block.insert_before(loop, [nodes.call("Slice", f"rows_of_{name}", sizes, [rows], attributes)])
        inner = argument_for(loop, rows, given)
        attributes = {"T": kind, "transpose_a": False, "transpose_b": False}
        made.append(nodes.call("MatMul", f"of_{name}", [part, inner], [value], attributes))
        begin += count
    total = Value(F32, product.output.shape)
    made.append(nodes.call("AddV2", "both", [each.output for each in made], [total], {"T": kind}))
    loop.body.insert_before(product, made)
    loop.body.replace_value(product.output, total)
    loop.body.erase(product)
    if not joined.output.is_needed:
        loop.body.erase(joined)
