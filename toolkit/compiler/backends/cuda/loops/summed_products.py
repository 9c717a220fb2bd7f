"""Products that only add up are one product over all of their rows.

The gradient of a weight that every step of a recurrent layer takes is a sum of a product for each step. Each of them
would be written and read again; the sum is one product of all steps' inputs, one behind the other, with all steps'
gradients, which adds up while it multiplies.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.parts.operations import JoinRows
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

Refused = Callable[[Operation], bool]
#: products from which on one is made of them: two joined tensors, of which two copies each may be left, and it are no
#: more launches than four products and what adds them
_FEWEST = 4
_JOINS = ("Concat", "ConcatV2", "Pack")


def sum_products(block: Block, refused: Refused) -> None:
    """Make one product of many whose results are added, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            sum_products(region, refused)
    for operation in block.operations:
        if not isinstance(operation, Call) or operation.op != "AddN" or operation.block is not block:
            continue
        if not refused(operation) and not operation.step.deref:
            _sum(block, operation, refused)


def _sum(block: Block, total: Call, refused: Refused) -> None:
    """Put one product in the place of a sum of products over rows, and of nothing else."""
    products = [product for value in total.inputs if (product := _product(value, total, refused)) is not None]
    if len(products) < max(_FEWEST, len(total.inputs)):
        return
    products = _in_order(products)
    made: list[Operation] = []
    factors: list[Value] = []
    like = products[0]
    for number in (0, 1):
        given = tuple(product.inputs[number] for product in products)
        shapes = [relations.shape(value) for value in given]
        joined = Value(given[0].dtype, (sum(shape[0] for shape in shapes), *shapes[0][1:]))
        made.append(JoinRows(parts=given, outputs=[joined], steps=[like.step], conditions=total.conditions))
        factors.append(joined)
    block.insert_before(total, made)
    total.become(Call, op="MatMul", inputs=tuple(factors), steps=[like.step])
    block.remove(products)


def _in_order(products: list[Call]) -> list[Call]:
    """Products in the order in which others join one of their factors, which is one memory then."""
    for number in (1, 0):
        factors = [product.inputs[number] for product in products]
        for user in factors[0].users:
            if not isinstance(user, Call) or user.op not in _JOINS:
                continue
            places = {value: at for at, value in enumerate(user.inputs)}
            if all(factor in places for factor in factors):
                return sorted(products, key=lambda product: places[product.inputs[number]])
    return products


def _product(value: Value, total: Call, refused: Refused) -> Call | None:
    """The product that gives a value, if it is a sum over rows that nobody else takes, of less than it gives."""
    product = value.producer
    if not isinstance(product, Call) or product.op != "MatMul" or product.step.deref or refused(product):
        return None
    node = product.step.node
    if value.sole_user is not total or product.block is not total.block or product.conditions != total.conditions:
        return None
    if not node.attr("transpose_a") or node.attr("transpose_b") or any(each.shape is None for each in product.inputs):
        return None
    # what would be copied at most, to be joined, is less than what each product writes
    return product if sum(each.size for each in product.inputs) <= value.size else None
