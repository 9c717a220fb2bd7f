"""The verifier of blocks: a sound one passes, and each way to break one is told."""

# passes may not write the private fields of a block; here they are broken on purpose
# pyright: reportPrivateUsage=false

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.errors import PassFailedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop, Select
from toolkit.compiler.ir.operations.calls import Test as LeaveUnless
from toolkit.compiler.ir.structure import broken
from toolkit.compiler.ir.value import Value
from toolkit.compiler.pipeline.passes import Compilation, Pass, apply_passes
from toolkit.compiler.settings import Settings
from toolkit.errors import InternalError

STEP: Any = SimpleNamespace(node=SimpleNamespace(name="chosen"))


def tensor() -> Value:
    return Value(np.dtype(np.float32), (2,))


def truth() -> Value:
    return Value(np.dtype(np.bool_), ())


def choice(predicate: Value, taken: Value, other: Value) -> Select:
    return Select(predicate=predicate, taken=taken, other=other, outputs=[tensor()], steps=[STEP])


def sound() -> Block:
    """Two choices, the second on the branch where the predicate holds; a loop behind them."""
    block = Block()
    predicate, a, b = truth(), tensor(), tensor()
    block.arguments = [predicate, a, b, None]
    first = choice(predicate, a, b)
    second = choice(predicate, first.output, Value(a.dtype, a.shape, np.zeros(2, np.float32)))
    second.conditions = Conditions(((predicate, True),))
    block.append(first)
    block.append(second)
    body = Block()
    body.arguments = [tensor(), truth()]
    state, goes_on = body.arguments
    assert state is not None
    assert goes_on is not None
    body.append(LeaveUnless(condition=goes_on, outputs=[], steps=[STEP]))
    body.append(choice(goes_on, state, state))
    body.results = [body.operations[-1].output]
    body.results[0].is_result = True
    block.append(Loop(states=(first.output,), invariants=(predicate,), body=body, outputs=[tensor()], steps=[STEP]))
    block.results = [block.operations[-1].output]
    block.results[0].is_result = True
    return block


def at(block: Block, index: int) -> Operation:
    return block.operations[index]


def body_of(block: Block) -> Block:
    return cast("Loop", at(block, 2)).body


def test_a_sound_block() -> None:
    assert list(broken(sound())) == []


def _swap(block: Block) -> None:
    block.move_before(at(block, 0), at(block, 1))


def _forget_user(block: Block) -> None:
    at(block, 0).output.users.clear()


def _miscount(block: Block) -> None:
    value = at(block, 0).output
    value.users[at(block, 1)] = 2


def _invent_user(block: Block) -> None:
    at(block, 1).output.gain(at(block, 0))


def _forget_producer(block: Block) -> None:
    at(block, 1).output.producer = None


def _make_twice(block: Block) -> None:
    at(block, 1).outputs.append(at(block, 0).output)


def _make_constant(block: Block) -> None:
    at(block, 1).output.constant = np.zeros(2, np.float32)


def _foreign_operand(block: Block) -> None:
    cast("Select", at(block, 1)).taken = tensor()


def _foreign_predicate(block: Block) -> None:
    predicate = truth()
    at(block, 1).conditions = Conditions(((predicate, True),))


def _unknown_predicate(block: Block) -> None:
    at(block, 1).predicates[0][0].decides = None


def _invent_decided(block: Block) -> None:
    decides = at(block, 1).predicates[0][0].decides
    assert decides is not None
    decides[at(block, 0)] = None


def _foreign_result(block: Block) -> None:
    block.results = [tensor()]
    block.results[0].is_result = True


def _unknown_result(block: Block) -> None:
    block.results[0].is_result = False


def _false_result(block: Block) -> None:
    at(block, 0).output.is_result = True


def _produced_argument(block: Block) -> None:
    assert block.arguments[1] is not None
    block.arguments[1].producer = at(block, 0)


def _argument_twice(block: Block) -> None:
    block.arguments[3] = block.arguments[1]


def _no_block(block: Block) -> None:
    at(block, 1).block = None


def _other_block(block: Block) -> None:
    at(block, 1).block = Block()


def _wrong_neighbour(block: Block) -> None:
    at(block, 1).previous = None


def _circle(block: Block) -> None:
    at(block, 2).next = at(block, 0)


def _wrong_last(block: Block) -> None:
    block._last = at(block, 0)


def _wrong_count(block: Block) -> None:
    block._count = 7


def _inside(block: Block) -> None:
    cast("Select", at(body_of(block), 1)).taken = tensor()


def _missing_argument(block: Block) -> None:
    body_of(block).arguments.append(None)


def _missing_result(block: Block) -> None:
    body_of(block).results = []


def _other_type(block: Block) -> None:
    argument = body_of(block).arguments[0]
    assert argument is not None
    argument.dtype = np.dtype(np.int32)


WAYS: list[tuple[Callable[[Block], None], str]] = [
    (_swap, "which is not made before"),
    (_forget_user, "is taken 1 times by 'select' of 'chosen', and knows of 0"),
    (_miscount, "is taken 1 times by 'select' of 'chosen', and knows of 2"),
    (_invent_user, "takes it, which does not"),
    (_forget_producer, "which is told that nothing makes it"),
    (_make_twice, "which is made before"),
    (_make_constant, "which is a constant"),
    (_foreign_operand, "takes float32[2], which is not made before"),
    (_foreign_predicate, "decides, which is not made before"),
    (_unknown_predicate, "which does not know that it does"),
    (_invent_decided, "is told that it decides 'select' of 'chosen', which it does not"),
    (_foreign_result, "result 0 is float32[2], which nothing here makes"),
    (_unknown_result, "which does not know that it is a result"),
    (_false_result, "which is told that it is a result"),
    (_produced_argument, "argument 1 is made by 'select'"),
    (_argument_twice, "argument 3 is another argument too"),
    (_no_block, "is in no block"),
    (_other_block, "is in another block"),
    (_wrong_neighbour, "has nothing in front of it, not 'select'"),
    (_circle, "comes twice"),
    (_wrong_last, "the last operation is 'select' of 'chosen', not 'loop'"),
    (_wrong_count, "there are 3 operations, not 7"),
    (_inside, "inside 'loop' of 'chosen': operation 1"),
    (_missing_argument, "3 arguments for 2 operands"),
    (_missing_result, "0 results for 1 outputs"),
    (_other_type, "argument 0 is int32[2], outside float32[2]"),
]


@pytest.mark.parametrize(("breaks", "told"), WAYS, ids=lambda thing: getattr(thing, "__name__", None))
def test_broken_blocks(breaks: Callable[[Block], None], told: str) -> None:
    block = sound()
    breaks(block)
    assert any(told in wrong for wrong in broken(block)), list(broken(block))


@pytest.mark.parametrize("settings", [Settings(verify=True), Settings(strict=True)])
def test_the_pass_is_named(settings: Settings) -> None:
    """That broke the block, with those before it."""
    block = sound()
    passes = [Pass("keeps", lambda block, to: None), Pass("swaps", lambda block, to: _swap(block))]
    to = Compilation(block, settings, {}, cast("RunningStep", None))
    with pytest.raises(InternalError, match=r"the pass 'swaps', after keeps, broke the program; this is a bug: "):
        apply_passes(block, to, passes)


def test_without_verification_nothing_is_walked() -> None:
    block = sound()
    to = Compilation(block, Settings(), {}, cast("RunningStep", None))
    apply_passes(block, to, [Pass("swaps", lambda block, to: _swap(block))])
    assert to.done == ["swaps"]


def test_whoever_decided_is_replaced_with_its_guards() -> None:
    block = sound()
    old, new = block.arguments[0], truth()
    assert old is not None
    block.arguments.append(new)
    block.replace_value(old, new)
    assert not old.is_needed
    assert at(block, 1).predicates == [(new, True)]
    assert new.is_predicate
    assert not list(broken(block))


@pytest.mark.parametrize(
    ("new", "told"),
    [(Value(np.dtype(np.int32), (2,)), "int32[2]"), (Value(np.dtype(np.float32), ()), "float32[]")],
    ids=["type", "shape"],
)
def test_a_value_is_not_replaced_by_one_of_another_type_or_shape(new: Value, told: str) -> None:
    """It is a mistake of the pass, which is named."""
    block = sound()
    old = block.arguments[1]
    assert old is not None
    to = Compilation(block, Settings(), {}, cast("RunningStep", None))
    passes = [Pass("replaces", lambda block, to: block.replace_value(old, new))]
    failure = f"'replaces' failed; this is a bug: ValueError: {told} is put in the place of float32[2]"
    with pytest.raises(PassFailedError, match=re.escape(failure)):
        apply_passes(block, to, passes)
    assert old.is_needed
    assert not new.is_needed
    assert not list(broken(block))


def test_a_shape_that_is_not_known_goes_with_any() -> None:
    block = sound()
    old, new = block.arguments[1], Value(np.dtype(np.float32), None)
    assert old is not None
    block.arguments.append(new)
    block.replace_value(old, new)
    assert not old.is_needed
    assert new.is_needed
    assert not list(broken(block))


def test_a_predicate_of_what_is_gone_decides_nothing() -> None:
    block = sound()
    predicate = at(block, 1).predicates[0][0]
    block.erase(at(block, 1))
    assert not predicate.is_predicate
    assert not list(broken(block))
