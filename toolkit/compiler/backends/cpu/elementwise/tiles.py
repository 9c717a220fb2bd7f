"""Elementwise operations run by their own kernels over pieces that fit in the cache, straight into the arena.

The kernels of quantized numbers make several temporaries, which cost little while they stay in the cache: the results
are the same bits. What follows each other is done piece by piece as well, with no tensor written in between. Functions
of 8-bit numbers are tables of 256 entries that the kernel fills.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """One operation of a chain.

    Attributes:
        prepare: from the parameters to a function of a tile, and of the tiles of the tensors beside it, to a tile of
            the type that the operation has.
        beside: how many tensors of the same shape it takes too; they come first among its further inputs.
        parameters: how many inputs are given whole.
    """

    prepare: Callable[..., Function]
    beside: int
    parameters: int


def kernel_stage(compute: Function, parameters: int, beside: int = 0, arrange: Callable[..., Any] = tuple) -> Stage:
    """A stage that is the kernel itself.

    Args:
        arrange: from the further inputs (those beside, then the parameters) to the order that the kernel wants.
    """

    def prepare(*given: Any) -> Function:
        def function(tile: Any, *tiles: Any) -> Any:
            return _first(compute(tile, *arrange((*tiles, *given))))

        return function

    return Stage(prepare, beside, parameters)


def table_stage(compute: Function, dtype: Any, rank: int, parameters: int) -> Stage:
    """A stage that looks the kernel's answers up; for numbers of 8 bits and parameters that hold for all of them."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype).reshape((1,) * (rank - 1) + (256,))

    def prepare(*given: Any) -> Function:
        table = np.asarray(_first(compute(numbers, *given))).reshape(-1)
        return lambda tile: table.take(tile.view(np.uint8), mode="wrap")  # which checks no index

    return Stage(prepare, 0, parameters)


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple | list) else result


_ANYWHERE = Trait.IN_ARENA | Trait.READS_ANYWHERE | Trait.WRITES_ANYWHERE | Trait.REUSES_INPUT


class Tiled(Operation, mnemonic="tiled", traits=_ANYWHERE):
    """Stages that follow each other, over pieces of a tensor that fit in the cache.

    Attributes:
        input: of the shape of the output.
        further: what the stages take besides: of each the tensors beside it, then its parameters.
    """

    input: Value = operand()
    further: tuple[Value, ...] = operands()
    stages: tuple[Stage, ...]

    def computed_by(self) -> str | None:
        return "NumPy, tile by tile into the arena"

    def verify(self) -> Iterator[str]:
        """Kernels look at what they are given."""
        return iter(())


class Filled(Operation, mnemonic="filled", traits=_ANYWHERE):
    """A function of arrays that fills others.

    Attributes:
        function: of the outputs and the arguments; it returns nothing.
    """

    arguments: tuple[Value, ...] = operands()
    function: Function

    def computed_by(self) -> str | None:
        return "NumPy, into the arena"

    def verify(self) -> Iterator[str]:
        """The function is made for its arguments."""
        return iter(())


class Numbers(Operation, mnemonic="numbers"):
    """A few numbers made of others: ranges of quantized tensors.

    Attributes:
        function: of the arguments; a sequence with as many numbers as there are outputs.
    """

    arguments: tuple[Value, ...] = operands()
    function: Function

    def computed_by(self) -> str | None:
        return "ranges"

    def verify(self) -> Iterator[str]:
        """The function is made for its arguments."""
        return iter(())


def chain_tiled(block: Block) -> None:
    """Join tiled operations that follow each other and have nothing to say at run time but their results."""
    for operation in block.operations:
        if not isinstance(operation, Tiled):
            continue
        before = operation.input.producer
        if not isinstance(before, Tiled) or operation.input.sole_user is not operation:
            continue
        if before.conditions != operation.conditions or not (_is_settled(before) and _is_settled(operation)):
            continue
        operation.stages = before.stages + operation.stages
        operation.steps = before.steps + operation.steps
        operation.input, operation.further = before.input, (*before.further, *operation.further)
        block.erase(before)


def _is_settled(operation: Tiled) -> bool:
    """Whether all parameters are known: nothing in them can be refused any more."""
    return all(value.is_constant for _, parameters in _inputs_of(operation) for value in parameters)


def _inputs_of(operation: Tiled) -> list[tuple[Sequence[Value], Sequence[Value]]]:
    """The tensors beside and the parameters of each stage."""
    found: list[tuple[Sequence[Value], Sequence[Value]]] = []
    at = 0
    for stage in operation.stages:
        middle, end = at + stage.beside, at + stage.beside + stage.parameters
        found.append((operation.further[at:middle], operation.further[middle:end]))
        at = end
    return found


def write_tiled(emitter: Emitter, operation: Tiled) -> None:
    """`run(out, x, tensors beside, parameters)`; what has no parameters to wait for is prepared here."""
    shape = operation.output.shape
    assert shape is not None
    makers: list[Function] = []
    counts: list[tuple[int, int]] = []
    inputs = [operation.input]
    for stage, (beside, parameters) in zip(operation.stages, _inputs_of(operation), strict=True):
        if all(value.is_constant for value in parameters):
            ready = stage.prepare(*[np.asarray(value.constant) for value in parameters])
            makers.append(lambda ready=ready: ready)
            parameters = []
        else:
            makers.append(stage.prepare)
        counts.append((len(beside), len(parameters)))
        inputs += [*beside, *parameters]
    run = emitter.share("f", _runner(shape, makers, counts, emitter.target.nests.tile))
    given = ", ".join(map(emitter.read, inputs))
    emitter.line(f"{run}({emitter.read(operation.output)}, {given})")


def _runner(shape: tuple[int, ...], makers: list[Function], counts: list[tuple[int, int]], size: int) -> Function:
    """Runs the stages over tiles of whole rows, of about so many elements."""
    columns = shape[-1]
    rows = (1,) * (len(shape) - 2) + (-1, columns) if len(shape) > 1 else (-1,)
    total = int(np.prod(shape[:-1], dtype=np.int64)) if len(shape) > 1 else columns
    step = max(1, size // columns) if len(shape) > 1 else size
    lead = (slice(None),) * (len(rows) - 2)

    def run(out: Any, x: Any, *further: Any) -> None:
        stages: list[tuple[Function, list[Any]]] = []
        at = 0
        for make, (beside, parameters) in zip(makers, counts, strict=True):
            tensors = [each.reshape(rows) for each in further[at : at + beside]]
            at += beside
            stages.append((make(*map(np.asarray, further[at : at + parameters])), tensors))
            at += parameters
        x, out = x.reshape(rows), out.reshape(rows)
        for start in range(0, total, step):
            place = (*lead, slice(start, start + step))
            tile = x[place]
            for function, tensors in stages:
                tile = function(tile, *[tensor[place] for tensor in tensors])
            np.copyto(out[place], tile)

    return run


def write_filled(emitter: Emitter, operation: Filled) -> None:
    """`function(*outputs, *inputs)` of one's own, into the arena."""
    function = emitter.share("f", operation.function)
    emitter.line(f"{function}({', '.join(map(emitter.read, (*operation.outputs, *operation.inputs)))})")


def write_numbers(emitter: Emitter, operation: Numbers) -> None:
    """A few numbers made of others: ranges of quantized tensors."""
    function = emitter.share("f", operation.function)
    given = ", ".join(f"array({emitter.read(value)})" for value in operation.inputs)
    emitter.line(f"{', '.join(map(emitter.bind, operation.outputs))}, = {function}({given})")
