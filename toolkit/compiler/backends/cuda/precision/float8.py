"""Products with weights in floats of 8 bits: `--precision fp8`, behind what bf16 made of a program.

Each product of a tensor with a weight that stays takes e4m3 of both with a factor for each tensor, adds in float32, and
gives what it gave before: bfloat16, or float32. Weights are quantized once and kept until they are changed; what the
step computes is quantized in it, its largest magnitude found on the device, by the kernel that makes it where that has
rows in registers; what an elementwise kernel makes for such products alone is computed twice instead of written. All
others stay in bfloat16, and the block's notes say why (`float8_rules`): products of two computed tensors, such as
attention's, those in the bodies of loops, and all of a program that learns. Convolutions do, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from toolkit.compiler.backends.cuda.fusion.chains import learns
from toolkit.compiler.backends.cuda.fusion.convolutions import stays
from toolkit.compiler.backends.cuda.layout.strided_operations import StridedProduct
from toolkit.compiler.backends.cuda.operations import FusedKernelCall, FusedRowsCall, LibraryProduct
from toolkit.compiler.backends.cuda.precision import float8_rules
from toolkit.compiler.backends.cuda.precision.copies import Copies
from toolkit.compiler.backends.cuda.precision.float8_operations import Float8Product, QuantizeCall, QuantizedNest
from toolkit.compiler.backends.cuda.precision.float8_rules import Candidate, Supports
from toolkit.compiler.backends.cuda.precision.operations import NarrowCopies, ProductsCall
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.float8_nests import TOGETHER
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.tensors import BF16, F8, F32

_PRODUCTS = (LibraryProduct, StridedProduct, ProductsCall)
#: whether an operation must stay a call
Refused = Callable[[Operation], bool]


def lower_float8(block: Block, refused: Refused, supports: Supports) -> None:
    """Have products with weights multiply 8-bit floats, behind `lower_precision` with bfloat16.

    Args:
        refused: whether an operation must stay as it is.
        supports: whether the library has a plan.
    """
    found = [_candidate(each, refused) for each in block.operations if isinstance(each, _PRODUCTS)]
    if not found:
        return
    if learns(block):
        block.notes.append("fp8: the program learns, so its products multiply bfloat16")
        return
    taken = _agreed(found, supports)
    for each in found:
        if each not in taken:
            why = float8_rules.refusal(each, float8_rules.HOPPER, supports)
            block.notes.append(f"fp8: {each.operation.name} stays in bfloat16: {why}")
    made: dict[tuple[Value, bool, Conditions], tuple[Value, Value]] = {}
    for each in taken:
        operation = each.operation
        a, a_factor = _quantized(block, made, each, each.a, turned=False)
        b, b_factor = _quantized(block, made, each, each.b, turned=each.turned)
        operation.become(
            Float8Product, a=a, b=b, a_factor=a_factor, b_factor=b_factor, bias=each.bias, sizes=each.sizes,
            count=each.count, leads=each.leads, strides=each.strides, activation=each.activation,
        )  # fmt: skip
    for call in [each for each in block.operations if isinstance(each, QuantizeCall)]:
        if _bytes_of_nest(call.x, {call}):
            _quantize_nest(block, call)
    biases = Copies(block, BF16, keeps=True)
    for product in block.operations:
        if isinstance(product, Float8Product) and product.bias is not None:
            biases.take(product, [product.bias])
    biases.put()
    _drop_copies(block)


def _agreed(found: Sequence[Candidate], supports: Supports) -> list[Candidate]:
    """Those that take 8 bits: fewer of them share what quantizing takes, so others may follow those that do not."""
    taken = list(found)
    while True:
        shares = Counter(each.a for each in taken)
        products = {each.operation for each in taken}
        for each in found:
            each.shares = shares[each.a] or 1
            each.nest = _bytes_of_nest(each.a, products)
        left = [each for each in taken if not float8_rules.refusal(each, float8_rules.HOPPER, supports)]
        if len(left) == len(taken):
            return left
        taken = left


def _quantized(
    block: Block, made: dict[tuple[Value, bool, Conditions], tuple[Value, Value]], of: Candidate, value: Value, *,
    turned: bool,
) -> tuple[Value, Value]:  # fmt: skip
    """A tensor in 8 bits and its factor, made in front of the first operation that wants them."""
    operation = of.operation
    key = value, turned, operation.conditions
    found = made.get(key)
    if found is None:
        shape = relations.shape(value)
        copy = Value(F8, (*shape[:-2], *shape[:-3:-1]) if turned else shape)
        found = made[key] = copy, Value(F32, (1,))
        maxima = _maxima(value) if not turned and _has_rows(value) else None
        call = QuantizeCall(
            x=value, maxima=maxima, turned=turned, stays=_is_kept(value), outputs=list(found), steps=[operation.step],
            conditions=operation.conditions,
        )  # fmt: skip
        block.insert_before(operation, [call])
    return found


def _bytes_of_nest(value: Value, users: Collection[Operation]) -> int:
    """What an elementwise kernel reads that makes a tensor for some operations alone; 0 where there is none."""
    producer = value.producer
    if type(producer) is not FusedKernelCall or producer.outputs != [value] or value.is_result or value.is_predicate:
        return 0
    if any(user not in users or user.conditions != producer.conditions for user in value.users):
        return 0
    dense = nests.broadcast_strides(producer.shape, producer.shape)
    if any(strides != dense and any(strides) for strides in producer.strides) or value.size % TOGETHER:
        return 0
    return sum(each.nbytes for each, strides in zip(producer.reads, producer.strides, strict=True) if strides == dense)


def _quantize_nest(block: Block, call: QuantizeCall) -> None:
    """Compute what is quantized where it is, in the place of the kernel that made it."""
    producer = call.x.producer
    assert isinstance(producer, FusedKernelCall)
    made = call.become(
        QuantizedNest, shape=producer.shape, reads=producer.reads, members=producer.members, place=producer.stores[0],
        outputs=call.outputs, steps=producer.steps,
    )  # fmt: skip
    block.move_before(producer, made)
    block.erase(producer)


def _has_rows(value: Value) -> bool:
    """Whether the kernel that makes a tensor holds its rows in registers."""
    producer = value.producer
    return isinstance(producer, FusedRowsCall) and value.shape == producer.shape and bool(value.shape)


def _maxima(value: Value) -> Value:
    """The largest magnitude of each row, which the kernel that makes a tensor stores too."""
    producer = value.producer
    assert isinstance(producer, FusedRowsCall)
    place, count = producer.stores[producer.outputs.index(value)], len(producer.reads) + len(producer.members)
    name = value.dtype.name
    # what is largest is rounded no more than what is stored
    found = [NestStep("Abs", (place,), name), NestStep("Max", (count,), name)]
    if value.dtype != F32:
        found.append(NestStep("Cast", (count + 1,), F32.name, (("Truncate", False),)))
    made = Value(F32, producer.shape[:-1])
    producer.members = (*producer.members, *found)
    producer.set_outputs([*producer.outputs, made])
    producer.stores = (*producer.stores, count + len(found) - 1)
    return made


def _drop_copies(block: Block) -> None:
    """Take out copies in 16 bits that nobody takes any more."""
    for operation in block.operations:
        if not isinstance(operation, NarrowCopies):
            continue
        pairs = zip(operation.values, operation.outputs, strict=True)
        needed = [(value, copy) for value, copy in pairs if copy.is_needed]
        if not needed:
            block.erase(operation)
        elif len(needed) < len(operation.outputs):
            operation.values = tuple(value for value, _ in needed)
            operation.set_outputs([copy for _, copy in needed])


def _original(value: Value) -> Value:
    """What a copy in 16 bits was made of: it is quantized itself, and rounded once."""
    producer = value.producer
    return producer.values[producer.outputs.index(value)] if isinstance(producer, NarrowCopies) else value


def _is_kept(value: Value) -> bool:
    return value.is_constant or stays(value)


def _candidate(operation: LibraryProduct | StridedProduct | ProductsCall, refused: Refused) -> Candidate:
    """A product as one that takes 8 bits, with what is against it."""
    a, b = _original(operation.a), _original(operation.b)
    found = Candidate(operation, a, b, turned=not operation.turn_b, has_maxima=_has_rows(a))
    if refused(operation):
        found.refusal = "it was excluded"
    elif operation.turn_a:
        found.refusal = "its first factor is stored transposed"
    elif operation.a.dtype != BF16 or operation.b.dtype != BF16:
        found.refusal = f"its factors are {operation.a.dtype}"
    elif not _is_kept(b):
        found.refusal = "its second factor is computed by the step"
    elif math.prod(relations.shape(b)[:-2]) != 1:
        found.refusal = "its second factor is not one matrix"
    else:
        _measure(operation, found, relations.shape(b)[-2:])
    return found


def _measure(
    operation: LibraryProduct | StridedProduct | ProductsCall, found: Candidate, stored: tuple[int, ...]
) -> None:
    """Fill in sizes and distances, b's as they are once it is transposed."""
    if isinstance(operation, StridedProduct):
        found.sizes, found.count = operation.sizes, operation.count
        found.bias, found.activation = operation.bias, operation.activation
        found.leads, found.strides = operation.leads, operation.strides
        if found.turned:
            (_, n, k), (rows, columns) = operation.sizes, stored
            step = operation.strides[1]
            if rows != k or operation.leads[1] != columns or (operation.count - 1) * step + n > columns:
                found.refusal = "its second factors are no columns of one matrix"
            found.leads = (operation.leads[0], rows, operation.leads[2])
            found.strides = (operation.strides[0], step * rows, *operation.strides[2:])
        return
    if isinstance(operation, LibraryProduct):
        m, n, k = operation.sizes
        found.bias, found.activation = operation.bias, operation.activation
    else:
        m, n, k = operation.sizes
        m *= math.prod(relations.shape(operation.a)[:-2])  # one matrix for all: their rows are those of one
    found.sizes, found.leads = (m, n, k), (k, k, n)
