"""Max pools whose windows lie side by side, in one go with relu; their gradients, with relu's and the bias's."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.backends.cpu.elementwise.operations import CompiledSum
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.elementwise import ReluGradient
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction, PoolGradient
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import Function, compiler
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.pools import MaxPool, max_pool, max_pool_gradient
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import F32


class TiledMaxPool(Operation, mnemonic="tiled_pool", traits=Trait.IN_ARENA | Trait.MACHINE_CODE):
    """A max pool whose windows lie side by side and cover all of the input; NaN is seen.

    Attributes:
        input: float32 [batch, rows, columns, channels].
        window: its rows and columns.
        relu: of relu(input).
        threads: that it runs on.
    """

    input: Value = operand()
    window: tuple[int, ...]
    relu: bool = False
    threads: int = 1

    def verify(self) -> Iterator[str]:
        return _covers(self.input, self.window, self.output)


class TiledMaxPoolGradient(Operation, mnemonic="tiled_pool_gradient", traits=Trait.IN_ARENA | Trait.MACHINE_CODE):
    """The gradient of such a pool with respect to its input.

    The second output, where there is one, is its sum over all axes but channels: the gradient of a bias.

    Attributes:
        input: that of the pool.
        gradient: with respect to the pool's output.
        window: that of the pool.
        relu: the pool is one of relu(what came before), and relu's gradient, by the pool's input, is in the output.
        threads: that it runs on.
    """

    input: Value = operand()
    gradient: Value = operand()
    window: tuple[int, ...]
    relu: bool = False
    threads: int = 1

    @property
    def sums(self) -> bool:
        """Whether the sums are made too."""
        return len(self.outputs) > 1

    def verify(self) -> Iterator[str]:
        yield from relations.same("the input of a pool and its gradient", self.input, self.output)
        yield from _covers(self.input, self.window, self.gradient)
        channels = relations.shape(self.input)[-1]
        for value in self.outputs[1:]:
            if value.size != channels or value.dtype != self.input.dtype:
                yield f"sums over {channels} channels are {relations.text(value)}"


def _covers(given: Value, window: tuple[int, ...], pooled: Value) -> Iterator[str]:
    x, y = relations.shapes(given, pooled)
    if (x[0], x[-1]) != (y[0], y[-1]) or given.dtype != pooled.dtype:
        yield f"a pool of {list(x)} makes {list(y)}"
    yield from relations.windows(x, window, y, strides=window, padding=((0, 0),) * len(window))


def lower_pool_gradients(block: Block, threads: int, least: int) -> None:
    """Turn `PoolGradient` to `TiledMaxPoolGradient` where windows lie side by side, with what follows it.

    Args:
        threads: that a plan may use.
        least: elements of the larger tensor.
    """
    for operation in block.operations:
        if not isinstance(operation, PoolGradient) or not _is_tiled(operation, least) or compiler() is None:
            continue
        x = operation.input
        made = operation.become(
            TiledMaxPoolGradient, input=x, gradient=operation.gradient, window=operation.window,
            threads=threads if openmp_symbols(*OPENMP) else 1,
        )  # fmt: skip
        after = made.output.sole_user
        if isinstance(after, ReluGradient) and after.conditions == made.conditions and _is_relus(after, made):
            made.relu = True
            _take(block, made, 0, after)
        total = _total(made)
        if total is not None:
            _take(block, made, 1, total)


def lower_pools(block: Block, threads: int, least: int) -> None:
    """Turn max pools to `TiledMaxPool` in programs in which NaN must be seen, relu before them included.

    oneDNN's pools pass over NaN and would need x to be searched for it. relu(x) itself is not made where nobody else
    than the pool's gradient looks at it, which is as well off with x.

    Args:
        threads: that a plan may use.
        least: elements of the larger tensor.
    """
    if not block.keeps_nan:
        return
    gone: set[Operation] = set()
    for operation in block.operations:
        if not isinstance(operation, Pool) or operation.function is not PoolFunction.MAX or compiler() is None:
            continue
        if not _is_tiled(operation, least) or operation.output.dtype != F32:
            continue
        made = operation.become(
            TiledMaxPool, input=operation.input, window=operation.window,
            threads=threads if openmp_symbols(*OPENMP) else 1,
        )  # fmt: skip
        relu = made.input.producer
        if relu is None or relu.op != "Relu" or relu.conditions != made.conditions or not _only_pools(made.input):
            continue
        made.relu = True
        made.steps = [*relu.steps, *made.steps]
        block.replace_value(made.input, relu.inputs[0])
        gone.add(relu)
    block.remove(gone)


def _only_pools(made: Value) -> bool:
    """Whether relu's output is looked at by the one pool and its gradients only, with relu's gradient in them."""
    if made.is_result or made.is_predicate or any(times > 1 for times in made.users.values()):
        return False
    pools = [user for user in made.users if isinstance(user, TiledMaxPool)]
    others = [user for user in made.users if not isinstance(user, TiledMaxPool)]
    return len(pools) == 1 and all(
        isinstance(user, TiledMaxPoolGradient) and user.relu and user.input is made for user in others
    )


def _is_relus(after: ReluGradient, operation: TiledMaxPoolGradient) -> bool:
    """Whether it is the gradient of the relu that made the pool's input."""
    return after.gradient is operation.output and after.input is operation.input


def _take(block: Block, operation: TiledMaxPoolGradient, position: int, other: Operation) -> None:
    """Make another operation's output as well, at this position, in its place."""
    block.erase(other)
    operation.set_outputs([*operation.outputs[:position], other.output])
    operation.steps = [*other.steps, *operation.steps]


def _total(operation: TiledMaxPoolGradient) -> CompiledSum | None:
    """The sum for each channel, if somebody wants it."""
    dx = operation.output
    assert dx.shape is not None
    for user in dx.users:
        if isinstance(user, CompiledSum) and user.conditions == operation.conditions:
            outer, _, inner = user.sizes
            if outer == 1 and inner == dx.shape[-1] and user.factor == 1.0:
                return user
    return None


def _is_tiled(operation: Pool | PoolGradient, least: int) -> bool:
    """Whether every number of the input is in one window, and channels fill registers."""
    x, window = operation.input, operation.window
    if x.shape is None or len(x.shape) != 4 or x.dtype != F32 or x.size < least:
        return False
    return (
        tuple(window) == tuple(operation.strides)
        and all(pair == (0, 0) for pair in operation.padding)
        and all(size % k == 0 for size, k in zip(x.shape[1:3], window, strict=True))
        and x.shape[-1] % LANES == 0
    )


def write_tiled_pool(emitter: Emitter, operation: TiledMaxPool) -> None:
    """Call the compiled loop."""
    x, y = operation.input, operation.output
    pool = _pool(operation, y, sums=False)
    emitter.execute_native(_function(pool, max_pool(pool)), [Span(x, pool.input_bytes), Span(y, pool.output_bytes)])


def write_tiled_pool_gradient(emitter: Emitter, operation: TiledMaxPoolGradient) -> None:
    """Call the compiled loop."""
    x, dy = operation.input, operation.gradient
    pool = _pool(operation, dy, sums=operation.sums)
    dx, *sums = operation.outputs
    regions: list[Region] = [Span(x, pool.input_bytes), Span(dy, pool.output_bytes), Span(dx, pool.input_bytes)]
    regions += [Span(value, 4 * pool.channels) for value in sums]
    if pool.sums:
        size = 4 * pool.channels * pool.threads
        regions.append(Span(emitter.passing(size), size))
    emitter.execute_native(_function(pool, max_pool_gradient(pool)), regions)


def _pool(operation: TiledMaxPool | TiledMaxPoolGradient, y: Value, *, sums: bool) -> MaxPool:
    """
    Args:
        y: of the output's shape.
    """
    assert y.shape is not None
    images, rows, columns, channels = y.shape
    height, width = operation.window
    return MaxPool(images, rows, columns, channels, height, width, operation.relu, sums, operation.threads)


def _function(pool: MaxPool, text: str) -> Function:
    machine = compiler()
    assert machine is not None
    return machine.function(text, openmp_symbols(*OPENMP) if pool.threads > 1 else {})
