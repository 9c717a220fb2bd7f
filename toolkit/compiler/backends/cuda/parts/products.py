"""Products of which parts are taken are products with parts of the matrix.

The gradient of `concat([x, h]) @ w` is a product with the whole matrix, of which one part is x's and the other h's.
With the rows of the matrix that belong to a part each is a product of its own, and nothing is copied out of a larger
one; where x needs no gradient, nothing is computed for it.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.layout.moved_axes import numbers_of
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_numbers
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import changes_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
#: what takes a part of a matrix
_TAKES = ("Slice", "StridedSlice")
#: axes of a matrix
_MATRIX = 2


def split_products(block: Block, refused: Refused) -> None:
    """Split products in loops with a turned matrix from outside.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            split_products(region, refused)
        if isinstance(operation, Loop) and not operation.predicates and not changes_variables(operation.body):
            given = dict(zip(operation.body.arguments[len(operation.states) :], operation.invariants, strict=True))
            for product in operation.body.operations:
                if isinstance(product, Call) and product.op == "MatMul" and not refused(product):
                    outer = given.get(product.inputs[1])
                    begins = None if outer is None else _parts(product, refused)
                    if outer is not None and begins:
                        _split(block, operation, product, outer, begins)


def _parts(product: Call, refused: Refused) -> dict[Call, int]:
    """The calls that take columns of a product, with the first of these; nothing where it is used otherwise."""
    node, out = product.step.node, product.output
    if node.attr("transpose_a") or not node.attr("transpose_b") or not product.is_plain:
        return {}
    if out.dtype != F32 or out.shape is None or len(out.shape) != _MATRIX or out.is_result or out.is_predicate:
        return {}
    found: dict[Call, int] = {}
    for user in out.users:
        if not isinstance(user, Call) or user.op not in _TAKES or not user.is_plain or refused(user):
            return {}
        begin, part = _begin(user), user.output.shape
        if user.inputs[0] is not out or begin is None or part is None or part[0] != out.shape[0] or 0 in part:
            return {}
        found[user] = begin[1]
    return found


def _begin(user: Call) -> tuple[int, ...] | None:
    """Where a part begins; None where that is not known, or it is no part as it lies."""
    begin, node = numbers_of(user.inputs[1]), user.step.node
    if user.op == "Slice" or begin is None:
        return begin
    masks = [node.attr(mask, 0) for mask in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")]
    if any(masks) or set(numbers_of(user.inputs[3]) or (0,)) != {1} or len(begin) != _MATRIX or min(begin) < 0:
        return None
    skipped = node.attr("begin_mask", 0)
    return tuple(0 if skipped & 1 << axis else number for axis, number in enumerate(begin))


def _split(block: Block, loop: Loop, product: Call, outer: Value, begins: dict[Call, int]) -> None:
    """Multiply with the rows of a matrix that belong to each part."""
    for part, begin in begins.items():
        nodes, columns = MadeNodes(part), relations.shape(outer)[1]
        count = relations.shape(part.output)[1]
        rows, argument = (Value(F32, (count, columns)) for _ in range(2))
        made = Value(F32, part.output.shape)
        sizes = [outer, host_numbers(begin, 0), host_numbers(count, columns)]
        block.insert_before(
            loop, [nodes.call("Slice", "rows", sizes, [rows], {"T": dtypes.float32, "Index": dtypes.int32})]
        )
        loop.invariants = (*loop.invariants, rows)
        loop.body.arguments.append(argument)
        attributes = {"T": dtypes.float32, "transpose_a": False, "transpose_b": True}
        loop.body.insert_before(
            part, [nodes.call("MatMul", "of_rows", [product.inputs[0], argument], [made], attributes)]
        )
        loop.body.replace_value(part.output, made)
    loop.body.remove(begins)
    loop.body.remove([product])
