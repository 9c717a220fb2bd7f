"""Loops compiled as a whole: the body is lowered as any block, but nothing in it may need the interpreter."""

from __future__ import annotations

from toolkit.compiler.backends.cpu.elementwise.operations import FusedLoopNest, Window
from toolkit.compiler.backends.cpu.emission.arena import plan_arena
from toolkit.compiler.backends.cpu.emission.staging import alias_of, reusable
from toolkit.compiler.backends.cpu.emission.writers import WRITERS
from toolkit.compiler.backends.cpu.loops.instructions import CopyTensor
from toolkit.compiler.backends.cpu.loops.interpreted import Interpreted
from toolkit.compiler.backends.cpu.loops.iteration import ITERATION_WRITERS, IterationEmitter
from toolkit.compiler.backends.cpu.loops.native_loop import NativeLoop
from toolkit.compiler.backends.cpu.loops.sequences import is_tensor
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Test
from toolkit.compiler.ir.operations.memory import Alias, Copy
from toolkit.compiler.ir.operations.sequences import TensorSequence
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.floating import find_floating
from toolkit.target.target import Target

#: what code is made of in compiled loops
LOOP_WRITERS = {**WRITERS, **ITERATION_WRITERS}


def check_test(body: Block) -> None:
    """Make sure that there is an operation that may leave the loop.

    Raises:
        NotSupportedError: there is none.
    """
    if not any(isinstance(operation, Test) for operation in body):
        raise NotSupportedError(body.operations[0], "there is no test in it")


def is_emitted_in_loop(operation: Operation) -> bool:
    """Whether code is made of an operation in a compiled loop."""
    return type(operation) in LOOP_WRITERS


def emit_loop(
    body: Block, target: Target, states: int, sequences: list[TensorSequence], fallback: Interpreted
) -> NativeLoop:
    """Generate the function of a loop whose body went through the passes.

    Args:
        body: one iteration.
        target: the processor that code is made for.
        states: how many of the body's arguments are the loop's state.
        sequences: the tensor lists in it.
        fallback: makes the same loop for the interpreter.

    Raises:
        NotSupportedError: an operation of the body needs the interpreter.
    """
    pinned = _pinned(body, states, target.copies.pinned_by_loops)
    position = body.positions()
    test = max(at for operation, at in position.items() if isinstance(operation, Test))
    kept = {
        value: _successor(body, index, position, test) if index < states else None
        for index, value in enumerate(body.arguments)
        if value is not None and value.dtype is not None and value not in pinned and is_tensor(value)
        if index < states or value.is_needed
    }
    floating = find_floating(body, target.copies.floating)
    layout = plan_arena(body, _has_place, alias_of, reusable, _never, kept, floating)
    emitter = IterationEmitter(body, layout, target, states, floating)
    for value in (*pinned, *floating):
        emitter.pinned[value] = emitter.fresh("p")
    emitter.note(LOOP_WRITERS)
    for argument, result in zip(body.arguments, body.results, strict=False):
        if argument is None or argument is result or argument not in kept:
            continue
        if result.is_constant or layout.storage[result] is not layout.storage[argument]:
            emitter.instructions.append(CopyTensor(argument, result))
    return NativeLoop(emitter, states, sequences, fallback)


def _has_place(operation: Operation) -> bool:
    return not isinstance(operation, Alias)


def _never(operation: Operation) -> bool:
    return False


def check_states(body: Block, sequences: list[TensorSequence]) -> None:
    """Make sure that there are but tensors of known shape and sequences.

    Raises:
        NotSupportedError: there is something else.
    """
    lists = {sequence.argument for sequence in sequences}
    first = body.operations[0]
    for value in body.arguments:
        if value is not None and value.users and value not in lists and not is_tensor(value):
            raise NotSupportedError(first, "the type or shape of a state is not known before it runs")
    held = {sequence.result for sequence in sequences}
    for index, (argument, result) in enumerate(zip(body.arguments, body.results, strict=False)):
        if argument is None or result is argument or index in held:
            continue
        if not (is_tensor(argument) and is_tensor(result)):
            raise NotSupportedError(first, "a state that is no tensor of known shape changes")
        if (argument.shape, argument.dtype) != (result.shape, result.dtype):
            raise NotSupportedError(first, "a state has another shape or type after an iteration")
    for operation in body.operations:
        for value in (*operation.inputs, *operation.outputs):
            if not value.is_constant and not is_tensor(value):
                raise NotSupportedError(operation, "a type or shape is not known before it runs")


def separate_results(body: Block) -> None:
    """A state whose next value is that of another state, or lies where one is kept, is copied before that changes."""
    arguments = {value for value in body.arguments if value is not None}
    for index, result in enumerate(body.results):
        root = result
        while isinstance(root.producer, Alias):
            root = root.producer.input
        if root in arguments and root is not body.arguments[index] and is_tensor(result):
            copied = Value(result.dtype, result.shape)
            copied.is_result = True
            steps = body.operations[-1].steps
            body.append(Copy(input=result, outputs=[copied], steps=steps))
            body.results[index] = copied
            result.is_result = any(other is result for other in body.results)


def _pinned(body: Block, states: int, least: int) -> set[Value]:
    """Tensors of so many bytes from outside that only compiled loops and primitives read."""
    return {
        value
        for value in body.arguments[states:]
        if value is not None
        and is_tensor(value)
        and value.nbytes >= least
        and not value.is_result
        and all(type(user) not in ITERATION_WRITERS for user in value.users)
    }


def _successor(body: Block, index: int, position: dict[Operation, int], test: int) -> Value | None:
    """The next value of a state, where it may be computed in the place of the present one.

    Args:
        test: the position of the last operation that may leave the loop, with the state as it is.
    """
    argument, result = body.arguments[index], body.results[index]
    operation = result.producer
    if argument is None or operation is None or argument.is_result or argument not in reusable(operation):
        return None
    if position[operation] <= test or any(isinstance(user, Alias) for user in argument.users):
        return None
    if max(position[user] for user in argument.users) > position[operation]:
        return None
    if isinstance(operation, FusedLoopNest) and any(
        window.value is argument and window != Window(argument) for window in operation.reads
    ):
        return None
    return result
