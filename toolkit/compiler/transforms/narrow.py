"""Products of which only some columns are used: the others are not computed."""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Part
from toolkit.compiler.ir.operations.products import MatMul


def narrow_products(block: Block, states: int) -> None:
    """Let products with weights from outside, all of whose users take one range of columns, compute just that.

    The gradient of a layer's input and state put together is of this kind, where nobody asks for the input's.
    """
    outside = set(block.arguments[states:])
    gone: set[Operation] = set()
    for product in block.operations:
        if not isinstance(product, MatMul) or product.right not in outside:
            continue
        output = product.output
        parts = [user for user in output.users if isinstance(user, Part)]
        if output.is_result or product.post_ops or product.bias is not None:
            continue
        if len(output.shape or ()) != 2 or not parts or len(parts) != len(output.users):
            continue
        assert output.shape is not None
        rows, columns = output.shape
        wanted = {(part.offset, part.strides, part.output.shape or ()) for part in parts}
        offset, strides, shape = next(iter(wanted))
        if len(wanted) > 1 or len(shape) != 2 or strides != (columns, 1):
            continue
        if shape[0] != rows or offset + shape[1] > columns:
            continue
        product.first_column = offset
        first = parts[0].output
        for part in parts[1:]:
            block.replace_value(part.output, first)
        product.set_outputs([first])
        product.steps += [step for part in parts for step in part.steps]
        gone.update(parts)
    block.remove(gone)
