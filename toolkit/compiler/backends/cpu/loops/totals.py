"""Products that are added up over the turns of a loop, computed for many turns at a time.

The gradient of weights is a state to which every turn adds A^T B, of a few rows each: the whole state is read and
written for little work. The rows of several turns are put below each other instead, and make one product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.compiler.backends.cpu.emission.primitives import alone, make
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Test
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.addresses import aligned
from toolkit.kernels.cpu.onednn.library import require
from toolkit.kernels.cpu.onednn.memory import F32, Memory, strided
from toolkit.kernels.cpu.onednn.primitive import Arg, Call, Primitive, SumPost, new_stream
from toolkit.kernels.types import Array

_ROWS = 512  # of a product: more make it no faster
_ALONE = 1 << 26  # multiplications: below, the turns in between had threads wait longer for each other than they save


@dataclass(eq=False, slots=True)
class Total:
    """A state to which every turn adds a product.

    Attributes:
        state: the body's argument, and its result.
        rows: of both factors, in one turn.
        columns: of the first and of the second factor.
        turns: how many make one product, a power of two.
        primitives: by number of turns: that, and the smaller powers of two for what is left over.
    """

    state: Value
    rows: int
    columns: tuple[int, int]
    turns: int
    primitives: dict[int, Primitive]

    def sizes(self) -> tuple[int, int]:
        """Bytes of a turn's factors."""
        return 4 * self.rows * self.columns[0], 4 * self.rows * self.columns[1]


def find_totals(block: Block, states: int) -> None:
    """Turn products that are only added to a state into "total_of": inputs [a, b], attrs total."""
    position = block.positions()
    test = max(at for operation, at in position.items() if isinstance(operation, Test))
    gone: set[Operation] = set()
    for index, state in enumerate(block.arguments[:states]):
        added = None if state is None or state.is_result else state.sole_user
        if state is None or added is None or block.results[index] not in added.outputs:
            continue
        product = _product(added, state)
        # what comes before a test happens in a turn that does not count
        if product is None or position[product] <= test or block.results.count(added.output) > 1:
            continue
        total = total_for(product, state)
        if total is None or added.output.users:
            continue
        gone.add(added)
        block.results[index] = state
        state.is_result = True
        product.kind = "total_of"
        product.outputs = []
        product.steps += added.steps
        product.attrs["total"] = total
    block.remove(gone)


def _product(added: Operation, state: Value) -> Operation | None:
    """The product that an operation adds to a state."""
    if added.kind not in ("Add", "AddV2", "AddN") or len(added.inputs) != 2 or added.output.shape != state.shape:
        return None
    other = added.inputs[1] if added.inputs[0] is state else added.inputs[0]
    producer = other.producer
    return producer if producer is not None and other.sole_user is added and producer.kind == "matmul" else None


def total_for(product: Operation, state: Value) -> Total | None:
    """How to add up a product over turns; None where that is no gain."""
    attrs = product.attrs
    if len(product.inputs) != 2 or attrs["weights"] is not None or attrs["bias"] is not None or attrs["posts"]:
        return None
    a, b = product.inputs
    if a.is_constant or b.is_constant or not attrs["transpose_a"] or attrs["transpose_b"]:
        return None
    assert a.shape is not None and b.shape is not None
    if len(a.shape) != 2 or len(b.shape) != 2 or product.output.shape != state.shape or state.dtype != F32:
        return None
    (rows, first), (_, second) = a.shape, b.shape
    if rows == 0 or rows * (first + second) > first * second:  # to put them aside is as much work
        return None
    turns = 1
    while 2 * turns * rows <= _ROWS:
        turns *= 2
    return Total(state, rows, (first, second), turns, {}) if turns > 1 else None


def write_total_of(emitter: Any, operation: Operation) -> None:
    """Compile the products."""
    total: Total = operation.attrs["total"]
    first, second = total.columns
    turns = total.turns
    while turns:
        rows = turns * total.rows
        with alone(rows * first * second, _ALONE):
            total.primitives[turns] = make(
                operation, "matmul", strided((first, rows), F32, (1, first)), strided((rows, second), F32, (second, 1)),
                None, strided((first, second), F32, (second, 1)), posts=[SumPost()],
            )  # fmt: skip
        turns //= 2
    emitter.steps.append(("total", total, *operation.inputs))


class Adder:
    """Puts aside the factors of a total, in an instance of a loop.

    Args:
        state: where that is.

    Attributes:
        buffers: for the factors of many turns.
        whole: the call for as many turns as there is room for.
    """

    def __init__(self, total: Total, state: Array):
        self._total = total
        self.buffers = tuple(aligned(size * total.turns, "factors put aside") for size in total.sizes())
        stream = new_stream()
        first, second = total.columns
        self._calls: dict[int, tuple[list[Memory], Call]] = {}
        for turns, primitive in total.primitives.items():
            rows = turns * total.rows
            shapes = (
                strided((first, rows), F32, (1, first)),
                strided((rows, second), F32, (second, 1)),
                strided((first, second), F32, (second, 1)),
            )
            memories = [Memory(desc, place) for desc, place in zip(shapes, (*self.buffers, state), strict=True)]
            call = Call(primitive, stream, list(zip((Arg.SRC, Arg.WEIGHTS, Arg.DST), memories, strict=True)))
            self._calls[turns] = (memories, call)
        self.whole = self._calls[total.turns][1]

    def add_rest(self, turns: int) -> bool:
        """Add the products of the turns that are put aside still; False where oneDNN failed."""
        start = 0
        execute = require().execute
        for size, (memories, call) in self._calls.items():
            if not turns & size:
                continue
            for memory, buffer, step in zip(memories, self.buffers, self._total.sizes(), strict=False):
                memory.point_to(buffer, start * step)
            if execute(*call.prepared):
                return False
            start += size
        return True
