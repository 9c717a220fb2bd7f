"""Products of 16-bit factors on GPUs: `--precision bf16` and `fp16`.

Matrix products, convolutions and their gradients take 16 bits and add in float32. What only they read, or what kernels
hand on to them, is stored in 16 bits; kernels of fused operations widen what they load, compute in float32, and round
what they store. Everything else stays float32: results, variables and their updates, what softmax and logarithms
are computed of, sums, statistics of norms, losses. A tensor that both kinds take is written in both types by the kernel
that makes it; weights are copied, many by one launch, and kept where the program does not learn. So it is in the
bodies of loops, which get copies of what all their iterations read from outside (`loops`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolkit.compiler.backends.cuda.attention.operations import AttentionCall, AttentionGradientCall
from toolkit.compiler.backends.cuda.fusion.chains import learns
from toolkit.compiler.backends.cuda.layout.strided_operations import StridedProduct
from toolkit.compiler.backends.cuda.loops.collected import Collect, CollectedProduct
from toolkit.compiler.backends.cuda.operations import (
    AddedProduct,
    ChannelGradients,
    ChannelMoments,
    FusedCall,
    FusedRowsCall,
    LibraryConvolution,
    LibraryProduct,
)
from toolkit.compiler.backends.cuda.parts.joins import take_wholes
from toolkit.compiler.backends.cuda.precision.calls import axes_of, handed_on, reductions, replace_products
from toolkit.compiler.backends.cuda.precision.copies import Copies
from toolkit.compiler.backends.cuda.precision.depthwise import DepthwiseCall
from toolkit.compiler.backends.cuda.precision.loops import given_from_outside, next_of_states, take_from_outside
from toolkit.compiler.backends.cuda.precision.operations import ConvolutionGradient, ProductsCall, WideSum
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.gpu.elementwise.row_nests import ROW_OPS
from toolkit.kernels.tensors import F32

#: ops of losses and scores: a rounding of what they are given is as large in what they give as the number is, so that
#: theirs stays float32; and so does that of exponentials beside sums of rows. Those of single numbers belong to
#: activations and their gradients (gelu's has one of -x * x / 2), where they move no more than the number itself
_EXACT = frozenset({*ROW_OPS, "Expm1", "Log", "Log1p"})
_EXACT_OF_ROWS = _EXACT | {"Exp"}
_ATTENTION = (AttentionCall, AttentionGradientCall)
_PRODUCTS = (
    LibraryProduct, AddedProduct, StridedProduct, ProductsCall, LibraryConvolution, ConvolutionGradient, DepthwiseCall,
    *_ATTENTION,
)  # fmt: skip
#: of loops, which of their operands their iterations want in 16 bits, by places
_Loops = Mapping[Loop, Collection[int]]


def lower_precision(block: Block, dtype: Any, refused: Any) -> None:
    """Have products multiply 16-bit floats, behind the passes that put operations together.

    Args:
        dtype: bfloat16 or float16.
        refused: whether an operation must stay a call.
    """
    _lower(block, dtype, refused, keeps=not learns(block))


def _lower(
    block: Block, dtype: Any, refused: Any, *, keeps: bool, given: Collection[Value] = ()
) -> tuple[dict[Value, Value], dict[Value, Value]]:
    """Likewise, of the body of a loop too.

    Args:
        keeps: the program does not learn: copies of its variables are kept.
        given: arguments whose copies can be had from outside.

    Returns:
        those of which copies are wanted, with these; and the loop's states among them, with the copies of their next
        values.
    """
    loops = {
        operation: _lower_loop(operation, dtype, refused, keeps=keeps)
        for operation in block.operations
        if isinstance(operation, Loop)
    }
    take_wholes(block, refused)
    replace_products(block, refused)
    if not any(loops.values()) and not any(
        isinstance(operation, (*_PRODUCTS, CollectedProduct)) for operation in block
    ):
        return {}, {}
    inner = _inner(block, refused, loops)
    narrow: set[Value] = set()
    for operation in block.operations:
        if isinstance(operation, (*_PRODUCTS, FusedCall)) or handed_on(operation, refused):
            narrow.update(value for value in operation.outputs if value in inner)
        elif reductions(operation, refused) and (operation.output in inner or operation.inputs[0] in narrow):
            narrow.update(value for value in operation.outputs if value in inner)
            operation.become(
                WideSum, x=operation.inputs[0], axes=axes_of(operation), mean=operation.op == "Mean",
                outputs=operation.outputs[:1],
            )  # fmt: skip
    for value in narrow:
        value.dtype = dtype
    copies = Copies(block, dtype, keeps=keeps, given=given)
    for operation in block.operations:
        if isinstance(operation, CollectedProduct):
            operation.narrow = dtype.name
        elif isinstance(operation, Loop):
            copies.take_in(operation, loops[operation])
        else:
            copies.take(operation, _wanted(operation, dtype, refused))
    following = {state: copies.stored(value) for state, value in next_of_states(block, copies.outside).items()}
    copies.put()
    for operation in block.operations:
        if isinstance(operation, FusedCall):
            _widen(operation, narrow | copies.made)
    return copies.outside, following


def _lower_loop(loop: Loop, dtype: Any, refused: Any, *, keeps: bool) -> Collection[int]:
    """A loop's body; which of the loop's operands it wants in 16 bits then."""
    outside, following = _lower(loop.body, dtype, refused, keeps=keeps, given=given_from_outside(loop))
    return take_from_outside(loop, outside, following) if outside else ()


def _inner(block: Block, refused: Any, loops: _Loops) -> set[Value]:
    """What products read and kernels hand on to them, and nobody needs in float32."""
    found: set[Value] = set()
    for operation in reversed(block.operations):  # users come before what they read
        for value in operation.outputs:
            if value.dtype != F32 or value.shape is None or value.is_result or value.is_predicate:
                continue
            takes = [_takes(user, value, found, refused, loops) for user in value.users]
            if True in takes and False not in takes:
                found.add(value)
    return found


def _takes(user: Operation, value: Value, inner: set[Value], refused: Any, loops: _Loops) -> bool | None:
    """Whether an operation wants a value in 16 bits; None where it takes it in either type, False in float32 alone."""
    match user:
        case LibraryProduct() | StridedProduct():
            return value is not user.bias
        case AddedProduct():
            return value is not user.added or user.output in inner
        case ProductsCall() | ConvolutionGradient() | DepthwiseCall():
            return True
        case AttentionCall() | AttentionGradientCall():
            return value in user.multiplied and value not in (user.mask, user.bias, user.keep)
        case Loop():
            return all(place in loops[user] for place, each in enumerate(user.inputs) if each is value)
        case LibraryConvolution():
            if value is user.x or (value is user.w and not user.norm):
                return True
            return value is user.added and user.output in inner
        case FusedCall():
            exact = _EXACT_OF_ROWS if isinstance(user, FusedRowsCall) else _EXACT
            if any(member.op in exact for member in user.members):
                return False
            return any(
                output in inner or any(_multiplies(each, output) for each in output.users) for output in user.outputs
            )
        case Collect():
            return True if user.multiplied else None
        case ChannelMoments():
            return None if value is user.x else False
        case ChannelGradients():
            return None if value in (user.dy, user.x) else False
        case _:
            if reductions(user, refused):
                return True if user.output in inner else None if value is user.inputs[0] else False
            return value in handed_on(user, refused) and user.output in inner


def _multiplies(user: Operation, value: Value) -> bool:
    return isinstance(user, _PRODUCTS) and (not isinstance(user, _ATTENTION) or value in user.multiplied)


def _wanted(operation: Operation, dtype: Any, refused: Any) -> list[Value]:
    """The operands that an operation takes in 16 bits."""
    is_narrow = bool(operation.outputs) and operation.output.dtype == dtype
    match operation:
        case LibraryProduct() | StridedProduct():
            return [operation.a, operation.b, *([operation.bias] if is_narrow and operation.bias is not None else [])]
        case AddedProduct():
            return [operation.a, operation.b, *([operation.added] if is_narrow else [])]
        case ProductsCall():
            return [operation.a, operation.b]
        case AttentionCall() | AttentionGradientCall():
            return list(operation.multiplied)
        case Collect():  # what no kernel can store so is copied behind the loop, all of it by one launch
            is_made = isinstance(operation.item.producer, FusedCall)
            return [operation.item] if operation.multiplied and is_made else []
        case ConvolutionGradient():
            return [operation.first, operation.dy]
        case DepthwiseCall():
            return [operation.first, operation.second]
        case LibraryConvolution():
            found = [operation.x, *([] if operation.norm else [operation.w])]
            others = [value for value in (operation.bias, operation.added) if value is not None]
            return [*found, *(others if is_narrow else [])]
        case ChannelGradients():
            both = [operation.dy, operation.x]
            return both if any(value.dtype == dtype for value in both) else []
        case WideSum():
            return [operation.x]
        case _:
            return handed_on(operation, refused) if is_narrow else []


def _widen(operation: FusedCall, narrow: set[Value]) -> None:
    """Let a kernel load 16 bits as float32, and round what it stores so."""
    count = len(operation.reads)
    loaded = [at for at, value in enumerate(operation.reads) if value in narrow]
    places = {at: count + number for number, at in enumerate(loaded)}

    def place(at: int) -> int:
        return at + len(loaded) if at >= count else places.get(at, at)

    members = [_cast(at, F32) for at in loaded]
    for member in operation.members:
        moved = tuple(place(at) for at in member.inputs)
        members.append(NestStep(member.op, moved, member.dtype, member.attributes))
    stores: list[int] = []
    for at, value in zip(operation.stores, operation.outputs, strict=True):
        if value in narrow:
            stores.append(count + len(members))
            members.append(_cast(place(at), value.dtype))
        else:
            stores.append(place(at))
    operation.members, operation.stores = tuple(members), tuple(stores)


def _cast(at: int, dtype: Any) -> NestStep:
    return NestStep("Cast", (at,), dtype.name, (("Truncate", False),))
