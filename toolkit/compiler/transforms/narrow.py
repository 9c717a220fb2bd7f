"""Products of which only some columns are used: the others are not computed."""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation


def narrow_products(block: Block, states: int) -> None:
    """Let products with weights from outside, all of whose users take one range of columns, compute just that.

    The gradient of a layer's input and state put together is of this kind, where nobody asks for the input's.
    """
    outside = set(block.arguments[states:])
    gone: set[Operation] = set()
    for product in block.operations:
        if product.kind != "matmul" or len(product.inputs) != 2 or product.inputs[1] not in outside:
            continue
        output = product.output
        parts = list(output.users)
        attrs = product.attrs
        if output.is_result or attrs["posts"] or attrs["bias"] is not None or attrs["weights"] is not None:
            continue
        if len(output.shape or ()) != 2 or not parts or any(part.kind != "part" for part in parts):
            continue
        assert output.shape is not None
        rows, columns = output.shape
        wanted = {(part.attrs["offset"], part.attrs["strides"], part.output.shape or ()) for part in parts}
        offset, strides, shape = next(iter(wanted))
        if len(wanted) > 1 or len(shape) != 2 or strides != (columns, 1):
            continue
        if shape[0] != rows or offset + shape[1] > columns:
            continue
        attrs["columns"] = offset
        first = parts[0].output
        for part in parts[1:]:
            block.replace_value(part.output, first)
        product.outputs = [first]
        first.producer = product
        product.steps += [step for part in parts for step in part.steps]
        gone.update(parts)
    block.remove(gone)
