"""Max pools whose windows lie side by side, in one go with relu; their gradients, with relu's and the bias's."""

from __future__ import annotations

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import Function, compiler
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.pools import MaxPool, max_pool, max_pool_gradient
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32
from toolkit.kernels.cpu.onednn.primitive import Pooling

_LEAST = 1 << 14  # elements of the larger tensor


def lower_pool_gradients(block: Block, threads: int) -> None:
    """Turn "pool_gradient" of [x, y, dy] to "tiled_pool_gradient" of [x, dy]: dx, and sums over all but channels.

    attrs relu: relu's gradient, by the pool's input, is in dx; sums: which is the second output.

    Args:
        threads: that a plan may use.
    """
    gone: set[Operation] = set()
    for operation in block.operations:
        if operation.kind != "pool_gradient" or not _is_tiled(operation) or compiler() is None:
            continue
        x, _, dy = operation.inputs
        operation.set_inputs([x, dy])
        operation.attrs.update(relu=False, sums=False, threads=threads if openmp_symbols(*OPENMP) else 1)
        operation.kind = "tiled_pool_gradient"
        after = operation.output.sole_user
        if after is not None and _is_relus(after, operation, x):
            operation.attrs["relu"] = True
            _take(operation, 0, after)
            gone.add(after)
        total = _total(operation)
        if total is not None:
            operation.attrs["sums"] = True
            _take(operation, 1, total)
            gone.add(total)
    block.remove(gone)


def lower_pools(block: Block, threads: int) -> None:
    """Turn max pools of [x] to "tiled_pool" in programs in which NaN must be seen; attrs relu: of relu(x).

    oneDNN's pools pass over NaN and would need x to be searched for it. relu(x) itself is not made where nobody else
    than the pool's gradient looks at it, which is as well off with x.

    Args:
        threads: that a plan may use.
    """
    if not block.keeps_nan:
        return
    gone: set[Operation] = set()
    for operation in block.operations:
        is_maximum = operation.kind == "pool" and operation.attrs["algorithm"] is Pooling.MAX
        if not is_maximum or not _is_tiled(operation) or operation.output.dtype != F32 or compiler() is None:
            continue
        operation.attrs.update(relu=False, threads=threads if openmp_symbols(*OPENMP) else 1)
        operation.kind = "tiled_pool"
        made = operation.inputs[0]
        relu = made.producer
        if relu is None or relu.kind != "Relu" or relu.guard != operation.guard or not _only_pools(made):
            continue
        operation.attrs["relu"] = True
        operation.steps = [*relu.steps, *operation.steps]
        block.replace_value(made, relu.inputs[0])
        gone.add(relu)
    block.remove(gone)


def _only_pools(made: Value) -> bool:
    """Whether relu's output is looked at by the one pool and its gradients only, with relu's gradient in them."""
    if made.is_result or made.is_predicate or any(times > 1 for times in made.users.values()):
        return False
    pools = [user for user in made.users if user.kind == "tiled_pool"]
    others = [user for user in made.users if user.kind != "tiled_pool"]
    return len(pools) == 1 and all(
        user.kind == "tiled_pool_gradient" and user.attrs["relu"] and user.inputs[0] is made for user in others
    )


def _is_relus(after: Operation, operation: Operation, x: Value) -> bool:
    """Whether it is the gradient of the relu that made the pool's input."""
    is_next = after.kind == "relu_gradient" and after.guard == operation.guard
    return is_next and after.inputs == [operation.output, x]


def _take(operation: Operation, position: int, other: Operation) -> None:
    """Make another operation's output as well, at this position."""
    value = other.output
    operation.outputs[position:] = [value]
    value.producer = operation
    other.set_inputs(())
    operation.steps = [*other.steps, *operation.steps]


def _total(operation: Operation) -> Operation | None:
    """The sum for each channel, if somebody wants it."""
    dx = operation.output
    assert dx.shape is not None
    for user in dx.users:
        if user.kind == "sum" and user.guard == operation.guard:
            outer, _, inner = user.attrs["sizes"]
            if outer == 1 and inner == dx.shape[-1] and user.attrs["factor"] == 1.0:
                return user
    return None


def _is_tiled(operation: Operation) -> bool:
    """Whether every number of the input is in one window, and channels fill registers."""
    attrs, x = operation.attrs, operation.inputs[0]
    if x.shape is None or len(x.shape) != 4 or x.dtype != F32 or x.size < _LEAST:
        return False
    return (
        tuple(attrs["kernel"]) == tuple(attrs["strides"])
        and all(pair == (0, 0) for pair in attrs["pads"])
        and all(size % kernel == 0 for size, kernel in zip(x.shape[1:3], attrs["kernel"], strict=True))
        and x.shape[-1] % LANES == 0
    )


def write_tiled_pool(emitter: Emitter, operation: Operation) -> None:
    """Call the compiled loop."""
    x, y = operation.inputs[0], operation.output
    pool = _pool(operation, y, sums=False)
    emitter.execute_native(_function(pool, max_pool(pool)), [Span(x, pool.input_bytes), Span(y, pool.output_bytes)])


def write_tiled_pool_gradient(emitter: Emitter, operation: Operation) -> None:
    """Call the compiled loop."""
    x, dy = operation.inputs
    pool = _pool(operation, dy, sums=operation.attrs["sums"])
    dx, *sums = operation.outputs
    regions: list[Region] = [Span(x, pool.input_bytes), Span(dy, pool.output_bytes), Span(dx, pool.input_bytes)]
    regions += [Span(value, 4 * pool.channels) for value in sums]
    if pool.sums:
        size = 4 * pool.channels * pool.threads
        regions.append(Span(emitter.passing(size), size))
    emitter.execute_native(_function(pool, max_pool_gradient(pool)), regions)


def _pool(operation: Operation, y: Value, *, sums: bool) -> MaxPool:
    """
    Args:
        y: of the output's shape.
    """
    attrs = operation.attrs
    assert y.shape is not None
    images, rows, columns, channels = y.shape
    height, width = attrs["kernel"]
    return MaxPool(images, rows, columns, channels, height, width, attrs["relu"], sums, attrs["threads"])


def _function(pool: MaxPool, text: str) -> Function:
    machine = compiler()
    assert machine is not None
    return machine.function(text, openmp_symbols(*OPENMP) if pool.threads > 1 else {})
