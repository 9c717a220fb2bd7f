"""Graphs whose loops and branches are decided by tensors, for tests of conditional nodes."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.client.flow.tensor_list_array import TensorListArray

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def large(x: Any, limit: float = 0.5) -> Any:
    return gm.reduce_sum(gm.square(x)) > limit


def halving(x: Any) -> Any:
    """As many iterations as the numbers want; none where they are small."""
    return gm.while_loop(lambda y: large(y), lambda y: [y * 0.75], [x])


def counting(x: Any) -> Any:
    """A counter of the host beside it, which ends the loop, too, and is asked for."""
    i, y = gm.while_loop(
        lambda i, y: gm.ops.logical_and(i < 5, large(y, 0.01)), lambda i, y: [i + 1, y * 0.75], [gm.constant(0), x]
    )
    return [i, y]


def swapping(x: Any) -> Any:
    """States that change places, and one that is the other's old value."""
    a, b, c = gm.while_loop(
        lambda a, b, c: large(a, 0.1), lambda a, b, c: [b * 0.5, a, b], [x, x * 2.0, x * 0.0]
    )  # fmt: skip
    return [a, b, c]


def nested(x: Any) -> Any:
    """The inner loop's count is other in each iteration of the outer one."""

    def body(y: Any, n: Any) -> Any:
        z, m = gm.while_loop(lambda z, m: large(z, 2.0), lambda z, m: [z * 0.5, m + 1.0], [y * 3.0, n])
        return [z * 0.75, m]

    y, n = gm.while_loop(lambda y, n: large(y, 0.6), body, [x, gm.constant(np.float32(0))])
    return [y, n]


def branch(x: Any) -> Any:
    return gm.cond(gm.reduce_sum(x) > 1.0, lambda: gm.exp(x) * 2.0, lambda: x - 1.0)


def branch_within_a_loop(x: Any) -> Any:
    def body(y: Any) -> Any:
        return [gm.cond(gm.reduce_max(y) > 0.7, lambda: y * 0.25, lambda: y * 0.9 - 0.001)]

    return gm.while_loop(lambda y: large(y, 0.3), body, [x])


def loop_on_a_branch(x: Any) -> Any:
    return gm.cond(gm.reduce_sum(x) > 1.0, lambda: halving(x), lambda: x - 1.0)


def products(x: Any) -> Any:
    """Library calls in the body, and what no iteration changes."""
    w = gm.constant(np.linspace(-0.5, 0.5, 9, dtype=np.float32).reshape(3, 3))
    scaled = gm.tanh(x)
    return gm.while_loop(lambda y: large(y, 1.2), lambda y: [gm.matmul(y, w) + scaled * 0.1], [x])


def counter_as_a_tensor(x: Any) -> Any:
    """The counter is computed with on the device."""

    def body(i: Any, y: Any) -> Any:
        return [i + 1, y * 0.5 + gm.cast(i, gm.float32) * 0.01]

    return gm.while_loop(lambda i, y: large(y, 0.3), body, [gm.constant(0), x])[1]


def while_of_functions(x: Any) -> Any:
    """As TensorFlow 2 has it: with a counter, and at most so many iterations."""
    return functional_flow.while_loop(
        lambda y, n: large(y, 0.05), lambda y, n: [y * 0.75, n + 1], [x, gm.constant(0)], maximum_iterations=9
    )


def if_of_functions(x: Any) -> Any:
    return functional_flow.cond(gm.reduce_sum(x) > 1.0, lambda: gm.exp(x) * 2.0, lambda: x - 1.0)


def case_of_functions(x: Any) -> Any:
    index = gm.cast(gm.reduce_max(x), gm.int32)
    return functional_flow.switch_case(index, [lambda: gm.exp(x), lambda: x - 1.0])


def case_of_four(x: Any) -> Any:
    """Also in a loop, with the number of the branch as a state."""
    kinds = [lambda: gm.exp(x), lambda: x - 1.0, lambda: x * x, lambda: gm.tanh(x) + 3.0]
    index = gm.cast(gm.reduce_max(x) * 2.0, gm.int32)

    def body(i: Any, y: Any) -> Any:
        branches = [lambda: y * 0.5, lambda: y * 0.75 - 0.01, lambda: gm.tanh(y) * 0.9]
        return [gm.ops.minimum(i + 1, 2), functional_flow.switch_case(i, branches)]

    turned = functional_flow.while_loop(lambda i, y: large(y, 0.2), body, [gm.constant(0), x])[1]
    return [functional_flow.switch_case(index, kinds), turned]


def two_predicates(x: Any) -> Any:
    """One within the other; the values of branches meet outside."""

    def inner() -> Any:
        return gm.cond(gm.reduce_max(x) > 2.0, lambda: x * 2.0, lambda: x * 3.0)

    return gm.cond(gm.reduce_sum(x) > 1.0, inner, lambda: x - 1.0) + 1.0


def first_iterations_by_the_host(x: Any) -> Any:
    """A loop of three iterations, with a loop in each that tensors decide."""
    return gm.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, halving(y * 1.5)], [gm.constant(0), x])[1]


def whole_numbers(x: Any) -> Any:
    """States of other types, and no state that is a tensor of the device."""
    y = gm.cast(x * 10.0, gm.int64)

    def body(i: Any, b: Any, z: Any) -> Any:
        return [gm.ops.maximum(i * 2, 1), gm.ops.logical_not(b), z - gm.cast(i, gm.int64)]

    return gm.while_loop(lambda i, b, z: gm.reduce_max(z) > 3, body, [gm.constant(0), gm.constant(False), y])


def lists_in_a_while(x: Any) -> Any:
    """A While whose end the host knows, with a list: written out in the recording."""

    def body(i: Any, y: Any, rows: Any) -> Any:
        return [i + 1, gm.tanh(y) * 0.5 + x, rows.write(i, y)]

    rows = gm.TensorArray(gm.float32, size=5, element_shape=[4, 3])
    _, y, rows = functional_flow.while_loop(lambda i, y, rows: i < 5, body, [gm.constant(0), x, rows])
    return [y, rows.stack()]


def lists_in_a_loop(x: Any) -> Any:
    """Elements are set as long as tensors say, some are set again, and some never."""

    def body(i: Any, y: Any, rows: Any) -> Any:
        rows = rows.write(i, y)
        rows = rows.write(gm.ops.maximum(i, 1), rows.read(i) + 1.0)
        return [i + 1, y * 0.75, rows]

    rows = TensorListArray(gm.float32, size=12, element_shape=[4, 3])
    i, y, rows = functional_flow.while_loop(lambda i, y, rows: large(y), body, [gm.constant(0), x, rows])
    return [i, y, rows.stack(), rows.read(2)]


def lists_read_in_a_loop(x: Any) -> Any:
    """What is read is of a list that nothing changes, of the one that is written, and of the list before that."""
    given = TensorListArray(gm.float32, size=4, element_shape=[3]).unstack(gm.tanh(x))

    def body(i: Any, y: Any, rows: Any) -> Any:
        row = rows.read(i)
        rows = rows.write(gm.ops.minimum(i + 1, 3), row * 0.5 + given.read(i))
        return [gm.ops.minimum(i + 1, 3), y * 0.6 + 0.01 * gm.reduce_sum(rows.read(0)), rows]

    rows = TensorListArray(gm.float32, size=4, element_shape=[3]).unstack(x)
    _, y, rows = functional_flow.while_loop(lambda i, y, rows: large(y, 0.4), body, [gm.constant(0), x, rows])
    return [y, rows.stack()]


def drawing(x: Any) -> Any:
    """As many random numbers as there are iterations, and some on a branch; others before and behind them."""
    first = gm.random_uniform([4, 3], seed=5)

    def body(y: Any, n: Any) -> Any:
        y = y * 0.6 + 0.01 * gm.random_normal([4, 3], seed=3)
        more = gm.cond(gm.reduce_sum(y) > 1.0, lambda: gm.random_uniform([4, 3], seed=4), lambda: y * 0.0)
        return [y + more * 0.01, n + 1.0]

    y, n = gm.while_loop(lambda y, n: large(y), body, [x + first * 0.1, gm.constant(np.float32(0))])
    return [y, n, first, gm.random_uniform([2], seed=6)]


def drawing_before_the_test(x: Any) -> Any:
    """A loop that chance ends: of its generator one number more is drawn than there are iterations."""
    return gm.while_loop(
        lambda y, n: gm.random_uniform([], seed=7) < 0.8,
        lambda y, n: [y * 0.9 + gm.cast(gm.random_uniform([4, 3], 0, 5, gm.int32, seed=8), gm.float32), n + 1.0],
        [x, gm.constant(np.float32(0))],
    )


def arrays_in_a_loop(x: Any) -> Any:
    """An array of TensorFlow 1 is written as long as tensors say; what is not written is zeros."""
    written = gm.TensorArray(gm.float32, size=12, element_shape=[4, 3], clear_after_read=False)
    i, y, rows = gm.while_loop(
        lambda i, y, rows: gm.ops.logical_and(large(y, 0.2), i < 12),
        lambda i, y, rows: [i + 1, y * 0.75, rows.write(i, y)],
        [gm.constant(0), x, written],
    )  # fmt: skip
    return [i, y, rows.read(0), rows.stack()]


def arrays_read_in_a_loop(x: Any) -> Any:
    """Rows of one array are read, those of another are written and read; no shape is said but by what is written."""
    given = gm.TensorArray(gm.float32, size=4, clear_after_read=False).unstack(gm.tanh(x))
    made = gm.TensorArray(gm.float32, size=6)

    def body(i: Any, y: Any, rows: Any) -> Any:
        rows = rows.write(i, y)
        return [i + 1, rows.read(i) * 0.6 + given.read(gm.ops.minimum(i, 3)), rows]

    i, y, _ = gm.while_loop(
        lambda i, y, rows: gm.ops.logical_and(large(y, 0.4), i < 6), body, [gm.constant(0), x[0], made]
    )
    return [i, y, given.stack()]


def growing_lists(x: Any) -> Any:
    """A loop pushes to a list that may have twelve elements, and another one takes them from its end."""
    shape = gm.constant([4, 3])
    history = gm.ops.empty_tensor_list(shape, gm.constant(12), element_dtype=gm.float32)
    history = gm.ops.tensor_list_push_back(history, x + 1.0)

    def back(left: Any, total: Any, held: Any) -> Any:
        held, y = gm.ops.tensor_list_pop_back(held, shape, element_dtype=gm.float32)
        return [left - 1, total * 0.5 + y, held]

    i, y, held = functional_flow.while_loop(
        lambda i, y, held: large(y, 0.2),
        lambda i, y, held: [i + 1, y * 0.75, gm.ops.tensor_list_push_back(held, y)],
        [gm.constant(0), x, history],
    )
    _, total, held = functional_flow.while_loop(lambda left, *_: left > 0, back, [i, x * 0.0, held])
    return [y, total, *gm.ops.tensor_list_pop_back(held, shape, element_dtype=gm.float32)[1:]]


def growing_arrays(x: Any) -> Any:
    """An array without a size, as one tensor behind the loop: what treats each row by itself follows."""
    made = gm.TensorArray(gm.float32, size=0, dynamic_size=True)
    _, y, made = gm.while_loop(
        lambda i, y, made: large(y, 0.3), lambda i, y, made: [i + 1, y * 0.75, made.write(i, y)],
        [gm.constant(0), x, made],
    )  # fmt: skip
    return [y, made.size(), gm.transpose(made.stack(), [1, 0, 2]) * 2.0 + gm.constant([1.0, 2.0, 3.0])]


def growing_arrays_read(x: Any) -> Any:
    """Elements are read in the loop that writes them, and the last one behind it."""
    made = gm.TensorArray(gm.float32, size=1, dynamic_size=True, clear_after_read=False).write(0, x)
    _, y, made = gm.while_loop(
        lambda i, y, made: large(y, 0.3), lambda i, y, made: [i + 1, made.read(i) * 0.75, made.write(i + 1, y)],
        [gm.constant(0), x, made],
    )  # fmt: skip
    return [y, made.size(), made.read(made.size() - 1)]


def growing_arrays_with_a_size(x: Any) -> Any:
    """An array that has more elements than are written, and may grow."""
    written = gm.TensorArray(gm.float32, 9, dynamic_size=True, clear_after_read=False, element_shape=[4, 3])
    i, y, rows = gm.while_loop(
        lambda i, y, rows: gm.ops.logical_and(large(y, 0.2), i < 8),
        lambda i, y, rows: [i + 1, y * 0.75, rows.write(i, y)],
        [gm.constant(0), x, written],
    )
    return [i, y, rows.read(0), rows.stack()]


def growing_arrays_of_numbers(x: Any) -> Any:
    """Whole numbers and truth values are elements, too."""
    numbers, truths = (gm.TensorArray(dtype, size=0, dynamic_size=True) for dtype in (gm.int32, gm.bool))

    def body(i: Any, y: Any, numbers: Any, truths: Any) -> list[Any]:
        best = gm.argmax(y, 1, output_type=gm.int32)
        return [i + 1, y * 0.75, numbers.write(i, best + i), truths.write(i, y > 0.5)]

    _, _, numbers, truths = gm.while_loop(
        lambda i, y, *_: large(y, 0.3), body, [gm.constant(0), x, numbers, truths]
    )  # fmt: skip
    return [numbers.stack(), gm.reduce_any(truths.stack(), 2)]


def growing_lists_by_place(x: Any) -> Any:
    """A While writes behind the end of a list, and what it wrote is one tensor."""
    made = TensorListArray(gm.float32, size=0, dynamic_size=True, element_shape=[4, 3])
    _, y, made = functional_flow.while_loop(
        lambda i, y, made: large(y, 0.3), lambda i, y, made: [i + 1, y * 0.75, made.write(i, y)],
        [gm.constant(0), x, made],
    )  # fmt: skip
    return [y, gm.softmax(made.stack())]


def growing_lists_as_tensors(x: Any) -> Any:
    """Elements that are pushed to a list without a limit, and how many they are."""
    shape = gm.constant([4, 3])
    history = gm.ops.empty_tensor_list(shape, gm.constant(-1), element_dtype=gm.float32)
    _, y, held = functional_flow.while_loop(
        lambda i, y, held: large(y, 0.2),
        lambda i, y, held: [i + 1, y * 0.75, gm.ops.tensor_list_push_back(held, y)],
        [gm.constant(0), x, history],
    )
    return [y, gm.ops.tensor_list_stack(held, shape, element_dtype=gm.float32), gm.ops.tensor_list_length(held)]


def known_at_first(x: Any) -> Any:
    """Numbers of the host that are known in the first of a few iterations, and follow from tensors in the others."""

    def body(i: Any, counts: Any, y: Any) -> list[Any]:
        y = y * gm.cast(gm.reduce_max(counts, [0]), gm.float32) * 0.5 + gm.cast(gm.reduce_min(counts, [0]), gm.float32)
        return [i + 1, counts + gm.cast(large(y), gm.int32), y]

    return list(gm.while_loop(lambda i, counts, y: i < 3, body, [gm.constant(0), gm.constant([1, 0]), x]))


GRAPHS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        halving, counting, swapping, nested, branch, branch_within_a_loop, loop_on_a_branch, products,
        counter_as_a_tensor, while_of_functions, if_of_functions, case_of_functions, case_of_four, two_predicates,
        first_iterations_by_the_host, lists_in_a_while, lists_in_a_loop, lists_read_in_a_loop, whole_numbers, drawing,
        drawing_before_the_test, arrays_in_a_loop, arrays_read_in_a_loop, growing_lists,
        known_at_first, growing_arrays, growing_arrays_read, growing_arrays_with_a_size, growing_arrays_of_numbers,
        growing_lists_by_place, growing_lists_as_tensors,
    )
}  # fmt: skip
FED = [X, X * 0.01, X * 2 + 0.5, np.abs(X), -np.abs(X), X * 1.5]
