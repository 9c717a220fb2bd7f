"""Products with what follows them as one call of cuBLASLt: a bias for each column, and an activation.

The library adds the bias and applies the activation while a tile of the product is in registers. Its gelu is the
approximation by tanh; the exact one stays a kernel. A relu of the library's may lose a NaN, so that programs that
learn, where a NaN must be seen, keep their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import learns, next_of, replace_chain, times_of
from toolkit.compiler.backends.cuda.operations import LibraryProduct
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.post_ops import UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, is_channels_first
from toolkit.compiler.transforms.patterns import activation_of

#: of factors that the library has
PRODUCT_TYPES = ("float16", "bfloat16", "float32", "float64")
_BATCHED = ("BatchMatMul", "BatchMatMulV2")
_BIASES = ("BiasAdd", "BiasAddV1", *ADDS)


def fuse_products(
    block: Block, refused: Callable[[Operation], bool], changes_variables: Callable[[Operation], bool]
) -> None:
    """Put the bias and the activation behind a matrix product into its call, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
    """
    for operation in block.operations:
        for region in operation.regions():
            fuse_products(region, refused, changes_variables)
    may_lose_nan = not learns(block)
    times = times_of(block, changes_variables)
    for operation in block.operations:
        if operation.block is not block or refused(operation) or not _is_product(operation):
            continue
        bias = next_of(operation, refused, times)
        reshaped = None
        if bias is not None and bias.op == "Reshape" and bias.output.shape is not None:
            reshaped, bias = bias, next_of(bias, refused, times)
        vector = None if bias is None else _bias_of(bias, (reshaped or operation).output)
        if bias is None or vector is None:
            continue
        between = [bias] if reshaped is None else [reshaped, bias]
        last, name, inside = _activation(bias, refused, times) if may_lose_nan else (bias, "Identity", [])
        _become(operation, vector, [*between, *inside], last, name)


def _is_product(operation: Operation) -> bool:
    """Whether it is one matrix product of known shapes: of matrices, or of rows of any number of axes and a matrix."""
    if not isinstance(operation, Call) or operation.op not in ("MatMul", *_BATCHED) or operation.step.deref:
        return False
    a, b = operation.inputs
    out = operation.output
    if any(value.shape is None or value.dtype is None or 0 in value.shape for value in (a, b, out)):
        return False
    if out.dtype.name not in PRODUCT_TYPES or a.dtype != out.dtype or b.dtype != out.dtype:
        return False
    if operation.op == "MatMul":
        return len(a.shape or ()) == len(b.shape or ()) == 2
    a_shape, b_shape = a.shape or (), b.shape or ()
    is_one = operation.op in _BATCHED and math.prod(b_shape[:-2]) == 1 and len(a_shape) >= len(b_shape)
    return is_one and not operation.step.node.attr("adj_x")


def _bias_of(operation: Operation, product: Value) -> Value | None:
    """The vector that an operation adds to each row of a product."""
    if operation.op not in _BIASES or len(operation.inputs) != 2 or operation.output.shape != product.shape:
        return None
    if operation.op not in ADDS and is_channels_first(operation) and len(product.shape or ()) > 2:
        return None
    first, second = operation.inputs
    for one, vector in ((first, second), (second, first)):
        columns = (product.shape or ())[-1:]
        if one is product and vector.shape == columns and vector.dtype == product.dtype:
            return vector
    return None


def _activation(
    bias: Operation, refused: Callable[[Operation], bool], times: dict[Operation, int]
) -> tuple[Operation, str, list[Operation]]:
    """The activation of a biased product: the operation that gives it, its name, and the operations before that."""
    user = next_of(bias, refused, times)
    if user is not None and user.op == "Relu":
        return user, "Relu", []
    x = bias.output
    for product in _behind(x):
        found = activation_of(product) if product.op == "Mul" and isinstance(product, Call) else None
        if found is not None and found[0] is x and found[1].function is UnaryFunction.GELU_TANH:
            inside = _between(x, product)
            whole = {product, *inside}
            alone = all(set(value.users) <= whole for value in (x, *(each.output for each in inside)))
            same = all(
                each.conditions == bias.conditions and times.get(each) == times[bias] and not refused(each)
                for each in whole
            )
            seen = any(value.is_result or value.is_predicate for value in (x, *(each.output for each in inside)))
            if alone and same and not seen:
                return product, "GeluApproximate", inside
    return bias, "Identity", []


#: operations of a gelu that is spelled out, from the first that takes its argument to the product that it ends with
_DEPTH = 8


def _behind(x: Value) -> list[Operation]:
    """The operations that follow a value, up to a depth, the nearest first."""
    found: dict[Operation, None] = {}
    values = [x]
    for _ in range(_DEPTH):
        users = [user for value in values for user in value.users if user not in found and len(user.outputs) == 1]
        found.update(dict.fromkeys(users))
        values = [user.output for user in users]
    return list(found)


def _between(x: Value, last: Operation) -> list[Operation]:
    """The operations that compute what an operation takes from a value, constants aside."""
    found: dict[Operation, None] = {}
    waiting = list(last.inputs)
    while waiting:
        value = waiting.pop()
        if value is not x and value.producer is not None and value.producer not in found:
            found[value.producer] = None
            waiting += value.producer.inputs
    return list(found)


def _become(operation: Operation, bias: Value, gone: list[Operation], last: Operation, name: str) -> None:
    """Put one call in the place of the last of the operations, and take the others out."""
    node = operation.step.node
    a, b = operation.inputs
    turned = ("transpose_a", "transpose_b") if operation.op == "MatMul" else ("adj_x", "adj_y")
    replace_chain(
        [operation, *(each for each in gone if each is not last)], last, LibraryProduct, a=a, b=b, bias=bias,
        turn_a=bool(node.attr(turned[0])), turn_b=bool(node.attr(turned[1])), activation=name,
    )  # fmt: skip
