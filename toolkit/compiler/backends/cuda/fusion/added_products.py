"""Sums with products at the end of an iteration are products that add: cuBLASLt reads what it adds up to.

The gradient of a cell's state is the product of its gates' gradients with the matrix, and what goes around the gates.
The next iteration takes it, so that no kernel of this one could add it up on the way. Sums that a kernel takes stay in
that kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.early import is_taken_by_kernels
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes
from toolkit.compiler.backends.cuda.operations import AddedProduct
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
#: axes of a matrix
_MATRIX = 2


def add_into_products(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Have products in loops add what a sum has besides them.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: no product is
            moved beyond it.
    """
    for operation in block.operations:
        for region in operation.regions():
            add_into_products(region, refused, changes_variables)
            if isinstance(operation, Loop):
                _add_in(region, refused, changes_variables)


def _add_in(body: Block, refused: Refused, changes_variables: Refused) -> None:
    times = times_of(body, changes_variables)
    for total in body.operations:
        if not _is_sum(total) or refused(total) or is_taken_by_kernels(total.output):
            continue
        products = [
            product for value in total.inputs
            if (product := _product(value, total)) is not None and not refused(product)
            and times[product] == times[total]
        ]  # fmt: skip
        if products:
            _add(body, cast("Call", total), products)


def _is_sum(operation: Operation) -> bool:
    """Whether it adds matrices of one shape."""
    if not isinstance(operation, Call) or operation.op not in (*ADDS, "AddN") or not operation.is_plain:
        return False
    out = operation.output
    if out.dtype != F32 or out.shape is None or len(out.shape) != _MATRIX or 0 in out.shape:
        return False
    return len(operation.inputs) > 1 and all(value.shape == out.shape for value in operation.inputs)


def _product(value: Value, total: Operation) -> Call | None:
    """What gives a term that nobody else takes, if that is a product."""
    product = value.producer
    if not isinstance(product, Call) or product.op != "MatMul" or not product.is_plain:
        return None
    if product.block is not total.block or value.sole_user is not total:
        return None
    return product if all(each.dtype == F32 and each.shape and 0 not in each.shape for each in product.inputs) else None


def _add(body: Block, total: Call, products: list[Call]) -> None:
    """Put products that add up one after the other in the place of a sum."""
    made = {product.output for product in products}
    others = [value for value in total.inputs if value not in made]
    out, kind = total.output, dtypes.float32
    added = others[0] if others else None
    if len(others) > 1:
        added = Value(F32, out.shape)
        attributes = {"T": kind, "N": len(others)}
        body.insert_before(total, [MadeNodes(total).call("AddN", "others", others, [added], attributes)])
    for product in products:
        body.move_before(total, product)
    if added is None:
        added = products.pop(0).output
    steps = [total.step]
    total.drop_operands()
    for product in products:
        (a, b), node, last = product.inputs, product.step.node, product is products[-1]
        product.become(
            AddedProduct, a=a, b=b, added=added, turn_a=bool(node.attr("transpose_a")),
            turn_b=bool(node.attr("transpose_b")), steps=[*product.steps, *(steps if last else [])],
        )  # fmt: skip
        added = product.output
    body.replace_value(out, added)
    body.erase(total)
