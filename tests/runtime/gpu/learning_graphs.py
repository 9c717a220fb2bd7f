"""Steps that learn through loops whose trip count tensors decide, for tests of lists and stacks without a limit."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.runtime.gpu.decided_graphs import large
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.client.recurrent import rnn, rnn_cell
from toolkit.client.variables import initializers


def weights() -> Any:
    return gm.Variable(np.eye(3, dtype=np.float32) * 0.8 + 0.05, use_resource=True)


def trained(loss: Any, *more: Any) -> list[Any]:
    """One step of an optimizer with slots; the loss, and all variables behind the step."""
    update = gm.train.Momentum(0.01, 0.9).minimize(loss)
    with gm.get_default_graph().control_dependencies([update]):
        return [loss, *more, *(variable.read_value() for variable in gm.global_variables())]


def functional(x: Any) -> Any:
    """A While, whose gradient has lists without a limit."""
    w = weights()
    y, n = functional_flow.while_loop(
        lambda y, n: large(y, 0.3), lambda y, n: [gm.tanh(gm.matmul(y, w.value())) * 0.9, n + 1], [x, gm.constant(0)]
    )
    return trained(gm.reduce_mean(gm.square(y - 0.1)), n)


def stacks(x: Any) -> Any:
    """A loop of TensorFlow 1, whose gradient has stacks."""
    w = weights()
    y, n = gm.while_loop(
        lambda y, n: large(y, 0.3), lambda y, n: [gm.tanh(gm.matmul(y, w.value())) * 0.9, n + 1], [x, gm.constant(0)]
    )
    return trained(gm.reduce_mean(gm.square(y - 0.1)), n)


def shrinking(x: Any) -> Any:
    """As many iterations as the logarithm of the numbers, however large they are."""
    w = weights()
    y = gm.while_loop(lambda y: large(y, 0.3), lambda y: [gm.matmul(y, w.value()) * 0.7], [x])
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


def functional_shrinking(x: Any) -> Any:
    """Likewise, as a While."""
    w = weights()
    y = functional_flow.while_loop(lambda y: large(y, 0.3), lambda y: [gm.matmul(y, w.value()) * 0.7], [x])
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


def newton(x: Any) -> Any:
    """A root by iterations that end where it is found, and the gradient through them."""
    a = gm.Variable(np.full((4, 3), 2.0, np.float32), use_resource=True)
    y = gm.square(x) * a.value() + 0.5
    root = functional_flow.while_loop(
        lambda r, y: gm.reduce_max(gm.abs(r * r - y)) > 0.01 * gm.reduce_max(y),
        lambda r, y: [0.5 * (r + y / r), y],
        [y, y],
    )[0]
    return trained(gm.reduce_mean(gm.square(root - 1.0)))


def learned_start(x: Any) -> Any:
    """A loop of TensorFlow 1 whose first state learns, and so does what its iterations take."""
    a, w = gm.Variable(np.full((4, 3), 1.5, np.float32), use_resource=True), weights()
    y = gm.while_loop(
        lambda y: large(y, 0.3), lambda y: [gm.matmul(y, w.value()) * 0.7 + a.value() * 0.01], [x * a.value()]
    )
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


def beam(x: Any) -> Any:
    """The best rows go on until they are bad enough; the scores of all of them learn, chosen as they were."""
    w = weights()
    kept = gm.TensorArray(gm.float32, size=6, element_shape=[2])

    def body(i: Any, rows: Any, total: Any, kept: Any) -> list[Any]:
        more = gm.concat([gm.tanh(gm.matmul(rows, w.value())), rows * 0.5], 0)
        scores = gm.reduce_sum(gm.square(more), 1) * 0.5 + gm.concat([total, total], 0)
        places = gm.ops.top_kv2(gm.negative(gm.stop_gradient(scores)), gm.constant(2))[1]
        best = gm.gather(scores * 1.0, places)
        return [i + 1, gm.gather(more * 1.0, places), best, kept.write(i, best)]

    i, rows, total, kept = gm.while_loop(
        lambda i, rows, total, kept: gm.ops.logical_and(gm.reduce_sum(total) < 0.5, i < 6),
        body, [gm.constant(0), x[:2], gm.constant([0.0, 0.0]), kept],
    )  # fmt: skip
    return trained(gm.reduce_mean(gm.square(rows)) + gm.reduce_mean(total) - gm.reduce_mean(kept.stack()), i)


def arrays(x: Any) -> Any:
    """Rows of one array are read, some of them several times, those of another one are written."""
    w = weights()
    given = gm.TensorArray(gm.float32, size=4, clear_after_read=False).unstack(gm.matmul(x, w.value()))
    made = gm.TensorArray(gm.float32, size=12, element_shape=[3])

    def body(i: Any, y: Any, rows: Any) -> list[Any]:
        y = gm.tanh(y) * 0.8 + given.read(gm.ops.floor_mod(i, 4)) * 0.3
        return [i + 1, y, rows.write(i, y)]

    i, y, rows = gm.while_loop(
        lambda i, y, rows: gm.ops.logical_and(large(y, 0.05), i < 12), body, [gm.constant(0), x[0], made]
    )
    return trained(gm.reduce_mean(gm.square(y - 0.1)) + gm.reduce_mean(gm.square(rows.stack())), i)


def stacked_again(x: Any) -> Any:
    """What iterations write is taken several times, as one tensor and one by one: so its gradients are added up."""
    w = weights()
    made = gm.TensorArray(gm.float32, size=12, element_shape=[3], clear_after_read=False)

    def body(i: Any, y: Any, rows: Any) -> list[Any]:
        y = gm.tanh(gm.matmul(y, w.value())) * 0.8
        return [i + 1, y, rows.write(i, gm.reduce_sum(y, 0))]

    i, _, rows = gm.while_loop(
        lambda i, y, rows: gm.ops.logical_and(large(y, 0.05), i < 12), body, [gm.constant(0), x, made]
    )
    first, second = gm.reduce_mean(gm.square(rows.stack())), gm.reduce_mean(gm.exp(rows.stack()))
    return trained(first + second + gm.reduce_mean(rows.read(1) * 3.0), i)


def drawn(x: Any) -> Any:
    """Each iteration draws, and so does the step before and behind them."""
    w = weights()
    noise = gm.random_normal([4, 3], seed=3) * 0.01

    def body(y: Any) -> list[Any]:
        return [gm.matmul(y, w.value()) * 0.7 + gm.random_uniform([4, 3], seed=5) * 0.001]

    y = gm.while_loop(lambda y: large(y, 0.3), body, [x + noise])
    return [*trained(gm.reduce_mean(gm.square(y - 0.1))), gm.random_uniform([2], seed=6)]


def lists_of_lists(x: Any) -> Any:
    """A While in a While: for each iteration of the outer one its gradient takes all that the inner one kept."""
    w = weights()

    def inner(y: Any) -> Any:
        again = functional_flow.while_loop(lambda y: large(y, 1.0), lambda y: [gm.matmul(y, w.value()) * 0.7], [y])
        return again[0] if isinstance(again, list | tuple) else again

    y = functional_flow.while_loop(lambda y: large(y, 0.2), lambda y: [inner(y * 1.4) * 0.6], [x])
    y = y[0] if isinstance(y, list | tuple) else y
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


def carried_on(x: Any) -> Any:
    """What one step ends with the next one begins with, and its iterations draw."""
    w = weights()
    before = gm.Variable(np.zeros((4, 3), np.float32), use_resource=True, trainable=False)

    def body(y: Any) -> list[Any]:
        return [gm.dropout(gm.tanh(gm.matmul(y, w.value())), 0.9, seed=3) * 0.9]

    y = gm.while_loop(lambda y: large(y, 0.3), body, [x + before.value() * 0.1])
    learned = trained(gm.reduce_mean(gm.square(y - 0.1)))
    with gm.get_default_graph().control_dependencies([before.assign(y)]):
        return [*learned, before.read_value()]


GRAPHS: dict[str, Callable[[Any], Sequence[Any]]] = {
    each.__name__: each
    for each in (
        functional,
        stacks,
        shrinking,
        functional_shrinking,
        newton,
        learned_start,
        beam,
        arrays,
        stacked_again,
        drawn,
        lists_of_lists,
        carried_on,
    )
}


def dynamic_rnn(x: Any, lengths: Any) -> list[Any]:
    """Sequences of several lengths [4], of at most three steps of one number: the longest one ends the loop."""
    inputs = gm.expand_dims(x, 2)
    cell = rnn_cell.BasicRNNCell(2, name="cell")
    with gm.variable_scope("layer", initializer=initializers.Constant(0.3)):
        outputs, state = rnn.dynamic_rnn(cell, inputs, sequence_length=lengths, dtype=gm.float32)
    return trained(gm.reduce_mean(gm.square(outputs - 0.1)), state)


def powers(x: Any, count: Any) -> list[Any]:
    """As many iterations as a number says that is fed."""
    w = weights()
    _, y = gm.while_loop(
        lambda i, y: i < count, lambda i, y: [i + 1, gm.tanh(gm.matmul(y, w.value()))], [gm.constant(0), x]
    )
    return trained(gm.reduce_mean(gm.square(y - 0.1)))


#: graphs that are fed whole numbers beside tensors, and what
COUNTED: dict[str, tuple[Callable[[Any, Any], Sequence[Any]], list[Any]]] = {
    "dynamic_rnn": (dynamic_rnn, [np.asarray(each, np.int32) for each in (
        [3, 1, 2, 3], [1, 1, 1, 1], [2, 1, 2, 1], [3, 3, 3, 0], [2, 2, 2, 2], [1, 0, 1, 1], [3, 2, 1, 0], [2, 0, 0, 0],
        [1, 2, 3, 1], [0, 0, 0, 0], [0, 0, 1, 0])]),
    "powers": (powers, [np.asarray(each, np.int32) for each in (2, 2, 3, 1, 0, 7, 4, 5, 40, 6, 41, 2)]),
}  # fmt: skip
