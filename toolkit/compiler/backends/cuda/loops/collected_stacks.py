"""What one loop pushes for the sum behind another is collected instead, part by part where it was put side by side.

The gradient of a cell's matrix takes what was multiplied with it, `concat([x, h])` of each step, from a stack. What is
collected are `x` and `h`, which are there anyway: the sum has a product for each, and nobody puts them side by side.
"""

from __future__ import annotations

from toolkit.compiler.backends.cuda.layout.moved_axes import number_of
from toolkit.compiler.backends.cuda.loops.collected import Collect, CollectedProduct, Collection
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, Loop, ReadVariable
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import F32

_PUSHES, _POPS, _STACKS = ("StackPush", "StackPushV2"), ("StackPop", "StackPopV2"), ("Stack", "StackV2")
#: axes of a matrix
_MATRIX = 2


def collect_pushed(block: Block, decided: set[Loop]) -> None:
    """Collect in the loops that push what the sums behind other loops are of.

    Args:
        decided: loops whose end the device decides.
    """
    for operation in block.operations:
        for region in operation.regions():
            collect_pushed(region, decided)
        if isinstance(operation, CollectedProduct) and len(operation.firsts) == 1:
            _collect(block, operation, decided)


def _collect(block: Block, product: CollectedProduct, decided: set[Loop]) -> None:
    loop = product.firsts[0].producer
    if not isinstance(loop, Loop) or loop.block is not block:
        return
    place = loop.outputs.index(product.firsts[0])
    kept = loop.body.results[place].producer
    if not isinstance(kept, Collect) or product.firsts[0].sole_user is not product or kept.output.users:
        return
    pop = _alone(kept.item.producer, _POPS)
    if pop is None or pop.block is not loop.body or pop.output.sole_user is not kept:
        return
    stack = _outside(loop, pop)
    maker = None if stack is None else _alone(stack.producer, _STACKS)
    others = [] if stack is None else [user for user in stack.users if user is not loop]
    if maker is None or maker.block is not block or len(others) != 1 or (stack is not None and stack.users[loop] != 1):
        return
    if any((number_of(limit) or 0) >= 0 for limit in maker.inputs):
        return  # pushing too much is an error
    (other,) = others
    if not isinstance(other, Loop) or other in decided or other.predicates or other.block is not block:
        return
    inner = [given for given, outer in zip(other.body.arguments, other.inputs, strict=True) if outer is stack]
    if len(inner) != 1 or inner[0] is None or len(inner[0].users) != 1 or inner[0].is_result:
        return
    push = _alone(next(iter(inner[0].users)), _PUSHES)
    if push is None or push.block is not other.body or push.output.is_needed:
        return
    joined = _alone(push.inputs[1].producer, ("ConcatV2",))
    parts = () if joined is None else _parts(joined, push)
    if joined is not None and parts:
        firsts = [_collected(block, other, joined, part) for part in parts]
        other.body.remove([push])
        other.body.remove([joined])
        argument = kept.held
        kept.output.is_result, argument.is_result = False, True
        loop.body.results[place] = argument
        loop.body.erase(kept)
        loop.body.erase(pop)
        product.firsts, product.backwards = tuple(firsts), True


def _alone(operation: Operation | None, ops: tuple[str, ...]) -> Call | None:
    """A call of one of these ops that is on no branch."""
    return operation if isinstance(operation, Call) and operation.op in ops and operation.is_plain else None


def _outside(loop: Loop, pop: Operation) -> Value | None:
    """The stack that an operation of a loop, and no other there, pops; None where it is not from outside."""
    handle = pop.inputs[0]
    if len(handle.users) != 1 or handle.is_result:
        return None
    given = zip(loop.body.arguments[len(loop.states) :], loop.invariants, strict=True)
    return next((outer for inner, outer in given if inner is handle), None)


def _parts(joined: Call, push: Call) -> tuple[Value, ...]:
    """What is put side by side for nobody but a push; nothing where something else is done."""
    if joined.block is not push.block or joined.output.sole_user is not push:
        return ()
    number, parts = number_of(joined.inputs[-1]), joined.inputs[:-1]
    if number is None or any(len(part.shape or ()) != _MATRIX or 0 in (part.shape or ()) for part in parts):
        return ()
    stays = not any(isinstance(part.producer, Dereference | ReadVariable) for part in parts)
    return tuple(parts) if number % _MATRIX == 1 and stays and all(part.dtype == F32 for part in parts) else ()


def _collected(block: Block, loop: Loop, place: Call, item: Value) -> Value:
    """The collection, behind a loop, of what each of its iterations has."""
    begin = Collection(outputs=[Value(None, None)], steps=[loop.step])
    held, made, last = Value(None, None), Value(None, None), Value(None, None)
    block.insert_before(loop, [begin])
    loop.body.append(Collect(held=held, item=item, multiplied=True, outputs=[made], steps=[place.step]))
    loop.body.arguments.insert(len(loop.states), held)
    loop.states = (*loop.states, begin.output)
    loop.body.results.append(made)
    made.is_result = True
    loop.set_outputs([*loop.outputs, last])
    return last
