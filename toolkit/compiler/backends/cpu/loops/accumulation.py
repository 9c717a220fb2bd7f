"""Products that are added up over the iterations of a loop, computed for many iterations at a time.

The gradient of weights is a state to which every iteration adds A^T B, of a few rows each: the whole state is read and
written for little work. The rows of several iterations are put below each other instead, and
make one product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.compiler.backends.cpu.emission.primitives import alone, make
from toolkit.compiler.backends.cpu.loops.instructions import AccumulateProduct
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.accumulation import Accumulate, Accumulation
from toolkit.compiler.ir.operations.calls import Test
from toolkit.compiler.ir.operations.products import MatMul
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS
from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.onednn.library import require
from toolkit.kernels.cpu.onednn.memory import Memory, strided
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, PrimitiveCall, SumPost, new_stream
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array
from toolkit.target.thresholds import LoopThresholds

if TYPE_CHECKING:
    from toolkit.compiler.backends.cpu.loops.iteration import IterationEmitter


def find_accumulations(block: Block, states: int, sizes: LoopThresholds) -> None:
    """Turn products that are only added to a state into `Accumulate`."""
    position = block.positions()
    test = max(at for operation, at in position.items() if isinstance(operation, Test))
    gone: set[Operation] = set()
    for index, state in enumerate(block.arguments[:states]):
        added = None if state is None or state.is_result else state.sole_user
        if state is None or added is None or block.results[index] not in added.outputs:
            continue
        product = _product(added, state)
        # what comes before a test happens in an iteration that does not count
        if product is None or position[product] <= test or block.results.count(added.output) > 1:
            continue
        accumulation = accumulation_for(product, state, sizes)
        if accumulation is None or added.output.users:
            continue
        gone.add(added)
        block.results[index] = state
        state.is_result = True
        first, second = product.inputs
        product.become(
            Accumulate, first=first, second=second, accumulation=accumulation, outputs=[],
            steps=[*product.steps, *added.steps],
        )  # fmt: skip
    block.remove(gone)


def _product(added: Operation, state: Value) -> MatMul | None:
    """The product that an operation adds to a state."""
    if added.op not in (*ADDS, "AddN") or len(added.inputs) != 2 or added.output.shape != state.shape:
        return None
    other = added.inputs[1] if added.inputs[0] is state else added.inputs[0]
    producer = other.producer
    return producer if isinstance(producer, MatMul) and other.sole_user is added else None


def accumulation_for(product: MatMul, state: Value, sizes: LoopThresholds) -> Accumulation | None:
    """How to add up a product over iterations; None where that is no gain."""
    a, b = product.left, product.right
    if b is None or product.bias is not None or product.post_ops:
        return None
    if a.is_constant or b.is_constant or not product.transpose_left or product.transpose_right:
        return None
    assert a.shape is not None and b.shape is not None
    if len(a.shape) != 2 or len(b.shape) != 2 or product.output.shape != state.shape or state.dtype != F32:
        return None
    (rows, first), (_, second) = a.shape, b.shape
    if rows == 0 or rows * (first + second) > first * second:  # to put them aside is as much work
        return None
    iterations = 1
    while 2 * iterations * rows <= sizes.accumulated_rows:
        iterations *= 2
    return Accumulation(state, rows, (first, second), iterations) if iterations > 1 else None


def write_accumulate(emitter: IterationEmitter, operation: Accumulate) -> None:
    """Compile the products."""
    accumulation = operation.accumulation
    first, second = accumulation.columns
    primitives: dict[int, Primitive] = {}
    iterations = accumulation.iterations
    while iterations:
        rows = iterations * accumulation.rows
        with alone(rows * first * second, emitter.target.threads.product_of_iterations):
            primitives[iterations] = make(
                operation, "matmul", strided((first, rows), F32, (1, first)), strided((rows, second), F32, (second, 1)),
                None, strided((first, second), F32, (second, 1)), posts=[SumPost()],
            )  # fmt: skip
        iterations //= 2
    emitter.instructions.append(AccumulateProduct(accumulation, (operation.first, operation.second), primitives))


class Adder:
    """Puts aside the factors of products, in an instance of a loop.

    Args:
        state: where that is.

    Attributes:
        buffers: for the factors of many iterations.
        whole: the call for as many iterations as there is room for.
    """

    def __init__(self, instruction: AccumulateProduct, state: Array):
        self._accumulation = accumulation = instruction.accumulation
        self.buffers = tuple(
            aligned(size * accumulation.iterations, "factors put aside") for size in accumulation.sizes()
        )
        stream = new_stream()
        first, second = accumulation.columns
        self._calls: dict[int, tuple[list[Memory], PrimitiveCall]] = {}
        for iterations, primitive in instruction.primitives.items():
            rows = iterations * accumulation.rows
            shapes = (
                strided((first, rows), F32, (1, first)),
                strided((rows, second), F32, (second, 1)),
                strided((first, second), F32, (second, 1)),
            )
            memories = [Memory(desc, place) for desc, place in zip(shapes, (*self.buffers, state), strict=True)]
            call = PrimitiveCall(primitive, stream, list(zip((Arg.SRC, Arg.WEIGHTS, Arg.DST), memories, strict=True)))
            self._calls[iterations] = (memories, call)
        self.whole = self._calls[accumulation.iterations][1]

    def add_rest(self, iterations: int) -> bool:
        """Add the products of the iterations that are put aside still; False where oneDNN failed."""
        start = 0
        execute = require().execute
        for size, (memories, call) in self._calls.items():
            if not iterations & size:
                continue
            for memory, buffer, step in zip(memories, self.buffers, self._accumulation.sizes(), strict=False):
                memory.point_to(buffer, start * step)
            if execute(*call.prepared):
                return False
            start += size
        return True
