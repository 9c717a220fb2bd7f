"""Loops over functions and loops of frames become `Loop` operations, with the shapes that their states keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from toolkit.compiler.importer.control import FrameLoop, UnstructuredError
from toolkit.compiler.importer.effects import writes_variables
from toolkit.compiler.importer.scope import Scope
from toolkit.compiler.ir.conditions import NONE, Conditions
from toolkit.compiler.ir.list_facts import SharedListFacts, join
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Role, Step

if TYPE_CHECKING:
    from toolkit.compiler.importer.lift import Lifter

_MAX_ATTEMPTS = 4  # to find shapes that a loop keeps, for each of its states

#: imports one iteration into the block of a lifter, from the values of the states; returns their next values
Iteration = Callable[["Lifter", list[Value]], list[Value]]


def import_function_loop(lifter: Lifter, step: Step, given: list[Value]) -> list[Value]:
    """A While node whose functions are put in its place; returns the last values of its states.

    Raises:
        UnstructuredError: it must stay a kernel.
    """
    states = step.node.attr("T")
    condition = lifter.callee(step, step.node.attr("cond"), (states, None))
    body = lifter.callee(step, step.node.attr("body"), (states, states))

    def iteration(inner: Lifter, state: list[Value]) -> list[Value]:
        lifter.state.room -= len(condition.steps) + len(body.steps)
        inner.test(step, inner.program(condition, state)[0])
        return inner.program(body, state)

    return _loop(lifter, step, given, iteration)


def import_frame_loop(lifter: Lifter, scope: Scope, loop: FrameLoop) -> None:
    """A loop of Enter, Merge, Switch, NextIteration and Exit nodes.

    Raises:
        UnstructuredError: something in it is not as tf.while_loop makes it.
    """
    program = scope.program
    entered = [scope.of(enter, 0) for enter in loop.enters]
    if all(conditions.impossible for conditions in entered):  # it is on a branch that is never taken
        for exit_, _ in loop.exits:
            scope.set(exit_, [Value(None, None)], Conditions(impossible=True))
        return
    reached = entered[0]
    if any(_branch(conditions) != _branch(reached) for conditions in entered):
        # it goes on with those of its values that are there, and what depends on no other comes out of it
        raise UnstructuredError("values enter a loop on different branches")

    def iteration(inner: Lifter, state: list[Value]) -> list[Value]:
        own = Scope(program, scope)
        for enter in loop.enters:
            own.set(enter, [inner.bring(scope.values[enter][0])], NONE)
        for merge, value in zip(loop.merges, state, strict=True):
            own.set(merge, [value, Value(np.dtype(np.int32), ())], NONE)
        for item in loop.order:
            if isinstance(item, FrameLoop):
                import_frame_loop(inner, own, item)
            elif item not in loop.merges:
                _step(inner, own, loop, item)
        return [own.values[after][0] for after in loop.nexts]

    with lifter.under(reached):
        final = _loop(
            lifter, program.steps[loop.enters[0]], [scope.values[enter][0] for enter in loop.initial], iteration
        )
    for exit_, state in loop.exits:
        scope.set(exit_, [final[state]], reached)


def _step(inner: Lifter, own: Scope, loop: FrameLoop, item: int) -> None:
    """One step inside a loop of frames."""
    step = own.program.steps[item]
    if item == loop.condition:
        inner.test(step, own.inputs(step)[0])
        own.set(item, own.inputs(step), NONE)
    elif item in loop.switches:
        value = own.inputs(step)[0]
        own.set(item, [value, value], NONE)
    elif step.role in (Role.EXIT, Role.NEXT_ITERATION):
        if own.reached(step) != NONE:
            raise UnstructuredError("the next value of a loop is on a branch that may not be taken")
        own.set(item, own.inputs(step), NONE)
    else:
        inner.step(own, item, step)


def _loop(lifter: Lifter, step: Step, initial: list[Value], iteration: Iteration) -> list[Value]:
    """A loop whose states start as these values; returns their last ones.

    The shape of each state is first taken to be that of its initial value. Where an iteration does not prove that it
    keeps it, it is unknown, and the iteration is imported again.
    """
    shapes = [value.shape for value in initial]
    varies = [False] * len(initial)
    facts = [value.facts for value in initial]
    before = [(held, held.facts) for held in lifter.state.held]
    hoists = True
    read: dict[int, Value] = {}
    for _ in range(_MAX_ATTEMPTS * len(initial) + 2):
        for held, fact in before:
            held.facts = fact
        inner = lifter.inside(hoists=hoists, read=read)
        # what no iteration changes may stay a constant
        state = [
            Value(value.dtype, shape, None if vary else value.constant)
            for value, shape, vary in zip(initial, shapes, varies, strict=True)
        ]
        for value, fact in zip(state, facts, strict=True):
            value.facts = fact
        after = iteration(inner, state)
        changed = False
        for index, (value, then) in enumerate(zip(state, after, strict=True)):
            if isinstance(value.facts, SharedListFacts):
                continue
            joined = join(value.facts, then.facts)
            if joined != value.facts:
                facts[index] = joined
                changed = True
            if then is not value and value.is_constant and then.constant is not value.constant:
                varies[index] = changed = True
            if then.dtype != value.dtype:
                raise UnstructuredError(f"a state of a loop is {value.dtype} and becomes {then.dtype}")
            if value.shape is not None and then.shape != value.shape:
                shapes[index] = None
                changed = True
        if hoists and writes_variables(inner.block):
            hoists, changed = False, True
        if not changed:
            break
    else:
        raise UnstructuredError("the shapes of a loop do not settle")
    keep = [index for index, value in enumerate(state) if not value.is_constant]
    inner.block.arguments = [*(state[index] for index in keep), *inner.brought.values()]
    inner.set_results([after[index] for index in keep])
    outputs = [Value(value.dtype, value.shape) for value in state]
    for value, known in zip(outputs, facts, strict=True):
        value.facts = known
    operation = Loop(
        states=tuple(initial[i] for i in keep), invariants=tuple(inner.brought), body=inner.block,
        outputs=[outputs[i] for i in keep], steps=[step],
    )  # fmt: skip
    lifter.add(operation, NONE)
    return [outputs[i] if not value.is_constant else value for i, value in enumerate(state)]


def _branch(conditions: Conditions) -> frozenset[tuple[Value, bool]] | None:
    """What must hold, in whichever order; None where it never does."""
    return None if conditions.impossible else frozenset(conditions.terms)
