"""Factors of 16 bits in loops: what all iterations read is copied before the loop, what they hand on is made in both
types.

A loop's weights come from outside. Their copies do so too, as invariants of their own, so that no iteration makes them
anew. A state that products take, such as what a recurrent cell hands on, gets a second state in 16 bits beside it,
where the kernel that makes its next value can store that in both types.
"""

from __future__ import annotations

from toolkit.compiler.backends.cuda.operations import FusedCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import F32


def given_from_outside(loop: Loop) -> set[Value]:
    """The arguments of a loop's body that can be had in 16 bits from outside."""
    body, count = loop.body, len(loop.states)
    found = {each for each in body.arguments[count:] if each is not None}
    for argument, following in zip(body.arguments[:count], body.results, strict=True):
        producer = following.producer
        if argument is not None and isinstance(producer, FusedCall) and producer.block is body:
            found.add(argument)
    return {each for each in found if each.dtype == F32 and each.shape is not None}


def next_of_states(body: Block, outside: dict[Value, Value]) -> dict[Value, Value]:
    """The states among arguments that are wanted in 16 bits, with their next values.

    Args:
        outside: the arguments, with their copies.
    """
    states = zip(body.arguments, body.results, strict=False)  # invariants come behind the states
    return {argument: following for argument, following in states if argument is not None and argument in outside}


def take_from_outside(loop: Loop, outside: dict[Value, Value], following: dict[Value, Value]) -> set[int]:
    """Give a loop the copies that its iterations want, as states and invariants behind those that it has.

    What is given from outside is float32 yet. An invariant that iterations want in 16 bits alone is not given any more.

    Args:
        outside: arguments of the body, with their copies.
        following: states among them, with the copies of their next values.

    Returns:
        which of its operands have to be 16 bits, by their places.
    """
    body, count = loop.body, len(loop.states)
    given = dict(zip(body.arguments, loop.inputs, strict=True))
    states = [argument for argument in body.arguments[:count] if argument in following]
    shared = [argument for argument in body.arguments[count:] if argument in outside]
    kept = [argument for argument in body.arguments[count:] if argument is not None and argument.is_needed]
    invariants = [*(given[each] for each in kept), *(given[each] for each in shared)]
    loop.states = (*loop.states, *(given[each] for each in states))
    loop.invariants = tuple(invariants)
    body.arguments = [
        *body.arguments[:count], *(outside[each] for each in states), *kept,
        *(outside[each] for each in shared),
    ]  # fmt: skip
    for argument in states:
        made, last = following[argument], outside[argument]
        made.is_result = True
        body.results.append(made)
        loop.set_outputs([*loop.outputs, Value(last.dtype, last.shape)])
    places = range(count, count + len(states)), range(len(loop.inputs) - len(shared), len(loop.inputs))
    return {place for each in places for place in each}
