"""Loops of TensorFlow: what they compute, what is fed, and how many of them become machine code."""

# functions over tensors of TensorFlow, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
ROWS = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
W = np.eye(4, dtype=np.float32) * np.float32(0.3) + np.float32(0.1)


@dataclass(frozen=True)
class LoopCase:
    """One graph.

    Attributes:
        build: from TensorFlow 1's module to the tensors to fetch.
        feeds: several of each placeholder where it is a list.
        whole: how many loops are machine code with control flow v1 and v2, and how many there are.
        before: operations that run first.
    """

    build: Callable[[Any], Any]
    feeds: dict[str, Any]
    whole: tuple[int, int, int]
    before: tuple[str, ...] = ()

    def steps(self) -> list[dict[str, Any]]:
        """What to feed, step by step."""
        count = max([len(value) for value in self.feeds.values() if isinstance(value, list)], default=1)
        return [
            {f"{name}:0": value[turn] if isinstance(value, list) else value for name, value in self.feeds.items()}
            for turn in range(count)
        ]


CASES: dict[str, LoopCase] = {}
#: shapes and types of placeholders
_GIVEN = {"n": ("int32", []), "x": ("float32", [3, 4]), "w": ("float32", [4, 4]), "rows": ("float32", [5, 3]),
          "p": ("bool", []), "s": ("string", []), "t": ("string", []), "big": ("float32", [160, 128])}  # fmt: skip
_VALUES: dict[str, Any] = {
    "x": X, "w": W, "rows": ROWS, "p": True, "s": b"one", "t": b"two", "n": [0, 1, 5],
    "big": np.random.default_rng(0).normal(size=(160, 128)).astype(np.float32),
}  # fmt: skip


def case(
    whole: tuple[int, int, int] = (1, 1, 1), before: tuple[str, ...] = (), **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a loop; its parameters after TensorFlow's module are placeholders."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        names = function.__code__.co_varnames[1 : function.__code__.co_argcount]

        def build(v1: Any) -> None:
            given = [v1.placeholder(*_GIVEN[name], name=name) for name in names]
            made = function(v1, *given)
            for index, tensor in enumerate(made if isinstance(made, list | tuple) else [made]):
                v1.identity(tensor, name=f"out{index}")

        name = function.__name__.strip("_").replace("_", " ")
        assert name not in CASES
        CASES[name] = LoopCase(build, {key: more.get(key, _VALUES[key]) for key in names}, whole, before)
        return function

    return register


def loop(v1: Any, n: Any, body: Callable[..., Any], *states: Any, **more: Any) -> list[Any]:
    """The states after n turns, without the counter."""
    return v1.while_loop(
        lambda i, *_: i < n, lambda i, *state: (i + 1, *body(i, *state)), [v1.constant(0), *states], **more
    )[1:]


# -- states ------------------------------------------------------------------------------------------------------


@case()
def _swapped(v1, n, x):
    return loop(v1, n, lambda i, a, b: (b, a), x, x * 2)


@case()
def _turned_around_three(v1, n, x):
    return loop(
        v1, n, lambda i, a, b, c: (b + c, a, v1.reshape(v1.reshape(b, [-1]), [3, 4])), x, x * 2.0, x * 3.0
    )  # fmt: skip


@case((0, 0, 1))
def _swapped_strings(v1, n, s, t):
    return loop(v1, n, lambda i, a, b: (b, a), s, t)


@case((0, 0, 1))
def _a_string_that_changes(v1, n, s):
    return loop(v1, n, lambda i, a: (v1.constant("other"),), s)


@case()
def _a_string_that_stays(v1, n, s, x):
    return loop(v1, n, lambda i, a, b: (a, v1.tanh(b)), s, x)


@case()
def _one_value_for_two_states_and_a_constant(v1, n, x):
    def body(i, a, b, c):
        d = v1.tanh(a) + b
        return d, d, v1.ones([3, 4])

    return loop(v1, n, body, x, x * 2.0, x * 3.0)


@case()
def _a_state_that_stays(v1, n, x):
    return loop(v1, n, lambda i, a, b: (a, b * a), x, x)


@case()
def _a_state_from_outside(v1, n, x):
    outside = v1.exp(x)
    return loop(v1, n, lambda i, a, b: (outside, a + v1.reshape(outside, [3, 4])), x, x)


@case()
def _quotients_ranges_and_fills(v1, n, x):
    def body(i, a, c):
        turn = v1.cast(v1.floormod(i, 3) - v1.floordiv(i - 5, -2), "float32")
        places = v1.range(4) * v1.floormod(c, 7) + c
        return a * 0.5 + v1.cast(places, "float32") * v1.fill([3, 4], turn * 0.25), v1.floormod(places - 9, -5)

    return loop(v1, n, body, x, v1.range(4))


@case()
def _states_that_nobody_asks_for(v1, n, x):
    return loop(v1, n, lambda i, a, b, c: (a + 1.0, v1.tanh(b) + c, c * 0.5), x, x, x)[1]


@case()
def _types(v1, n, x):
    def body(i, a, b, c, d, e):
        return a * 2 + 1, b * 1.5 + v1.cast(a, "float64"), v1.logical_not(c), (
            d + v1.cast(c, "int64")), v1.where(e > 0.0, e, -v1.cast(d, "float32"))  # fmt: skip

    return loop(v1, n, body, v1.cast(x * 4.0, "int32"), v1.cast(x, "float64"), x > 0.0,
                v1.fill([3, 4], np.int64(1 << 40)), x)  # fmt: skip


@case()
def _other_shapes_of_states(v1, n, x):
    return loop(v1, n, lambda i, a, b: (v1.reshape(b, [3, 4]) + 1.0, v1.reshape(a, [12])), x, v1.reshape(x, [12]) * 2.0)


@case()
def _scalars(v1, n):
    return loop(v1, n, lambda i, a, b: (a * 1.5 + v1.cast(i, "float32"), v1.maximum(b, i)), 1.0, 2)


@case(n=[0, 3, 5000])
def _thousands_of_turns(v1, n, x):
    return loop(v1, n, lambda i, a: (v1.tanh(a) * 1.01,), x)


@case()
def _parts_of_a_state(v1, n, x):
    def body(i, a):
        left, right = v1.split(a, 2, axis=1)
        rows = v1.unstack(a, axis=0)
        return (v1.concat([right * 0.5, v1.tanh(left)], 1) + rows[1] + a[2:, ...] * 0.1 - a[1, 2],)

    return loop(v1, n, body, x)


@case((0, 0, 1))
def _parts_with_steps(v1, n, x):
    return loop(v1, n, lambda i, a: (a[::-1, ::-1] * 0.5 + a[:, 1:2] - a[:, ::2][:, :1],), x)


@case()
def _sums(v1, n, x):
    def body(i, a):
        mean = v1.reduce_mean(a, [1], keepdims=True)
        return (a - mean + v1.reduce_sum(a, [0]) * 0.1 + v1.reduce_mean(a) * 0.5,)

    return loop(v1, n, body, x)


@case()
def _products(v1, n, x, w):
    return loop(v1, n, lambda i, a: (v1.nn.relu(v1.matmul(a, w) + 0.1) + x,), x)


@case()
def _large_tensors_from_outside(v1, n, big):
    def body(i, a, b):
        return v1.tanh(v1.matmul(a, big, transpose_b=True) * 0.01)[:, :128] + big[:4] * 0.1, b * 0.5 + big

    return loop(v1, n, body, big[:4], big * 2.0)


# -- nested, branches, variables ----------------------------------------------------------------------------------


@case((1, 1, 2))
def _nested(v1, n, x):
    return loop(v1, n, lambda i, a: (loop(v1, i, lambda j, b: (v1.tanh(b) + x,), a)[0] * 0.5,), x)


@case((0, 0, 1))
def _a_branch_in_it(v1, n, x):
    return loop(v1, n, lambda i, a: (v1.cond(v1.reduce_sum(a) > 0.1, lambda: a - x, lambda: a * 0.5 + 1.0),), x)


@case((2, 2, 2), p=[True, False, True])
def _on_branches(v1, p, x):
    n = v1.constant(3)
    return v1.cond(p, lambda: loop(v1, n, lambda i, a: (v1.tanh(a) + x,), x)[0],
                   lambda: loop(v1, n, lambda i, a: (v1.exp(-a) * x,), x)[0])  # fmt: skip


@case((2, 2, 2), before=("init",))
def _a_variable_that_changes_between_loops(v1, n, x):
    v = v1.get_variable("v", [3, 4], initializer=v1.ones_initializer(), use_resource=True)

    def turns():
        return loop(v1, n, lambda i, a: (a * 0.5 + v.read_value(),), x)[0]

    first = turns()
    with v1.control_dependencies([first]):
        update = v.assign_add(first)
    with v1.control_dependencies([update]):
        second = loop(v1, n, lambda i, a: (a * 0.5 + v.read_value(),), x + 0.0)[0]
    v1.group(v.initializer, name="init")
    return first, second


@case((3, 3, 3), before=("init",), p=[True, False, True])
def _a_variable_read_on_branches(v1, n, x, p):
    v = v1.get_variable("v", [3, 4], initializer=v1.ones_initializer(), use_resource=True)
    z = v1.get_variable("z", [3, 4], initializer=v1.ones_initializer(), use_resource=True)

    def turns(start):
        return loop(v1, n, lambda i, a: (a * 0.5 + v.read_value(),), start)[0]

    chosen = v1.cond(p, lambda: turns(x), lambda: turns(x * 2.0))
    v1.group(v.initializer, z.initializer, name="init")
    after = turns(x * 3.0)
    return chosen, after, z.assign_add(chosen + after)


@case((0, 0, 1), before=("init",))
def _a_variable_that_the_loop_changes(v1, n, x):
    v = v1.get_variable("v", [3, 4], initializer=v1.ones_initializer(), use_resource=True)
    v1.group(v.initializer, name="init")

    def body(i, a):
        with v1.control_dependencies([v.assign_add(a)]):
            return (v1.tanh(v.read_value()),)

    final = loop(v1, n, body, x, parallel_iterations=1)[0]
    with v1.control_dependencies([final]):
        return final, v.read_value()


# -- arrays and gradients -----------------------------------------------------------------------------------------


@case((1, 1, 1))
def _an_array_that_is_read(v1, rows):
    ta = v1.TensorArray("float32", 5, element_shape=[3]).unstack(rows)
    return loop(v1, 5, lambda i, a: (v1.tanh(a) + ta.read(i),), rows[0])


@case((1, 1, 1), n=[0, 1, 7])
def _an_array_that_is_written(v1, n, rows):
    ta = v1.TensorArray("float32", 7, element_shape=[3])
    final = loop(v1, n, lambda i, a, t: (v1.tanh(a) * 1.5, t.write(6 - i, a)), rows[0], ta)
    return final[0], final[1].stack()


@case((1, 0, 1), n=[0, 1, 40])
def _an_array_that_grows(v1, n, rows):
    ta = v1.TensorArray("float32", 0, dynamic_size=True, element_shape=[3])
    final = loop(v1, n, lambda i, a, t: (v1.tanh(a) * 1.5, t.write(i, a)), rows[0], ta)
    return final[0], final[1].stack()


@case((1, 1, 1))
def _arrays_of_integers_and_bools(v1, rows):
    numbers = v1.TensorArray("int64", 5, element_shape=[]).unstack(v1.constant([5, 1, -(1 << 60), 3, 4], "int64"))
    flags = v1.TensorArray("bool", 5, element_shape=[3]).unstack(rows > 0.0)

    def body(i, a, b, t):
        return a + numbers.read(i), v1.logical_or(v1.logical_not(b), flags.read(4 - i)), t.write(i, a)

    final = loop(v1, 5, body, np.int64(1), rows[0] > 0.0, v1.TensorArray("int64", 5, element_shape=[]))
    return final[0], final[1], final[2].stack()


@case((1, 1, 1))
def _map(v1, rows):
    return v1.map_fn(lambda row: row * row + v1.reduce_sum(row), rows)


@case((1, 1, 1))
def _scan(v1, rows):
    return v1.scan(lambda a, row: v1.tanh(a) + row, rows)


@case((2, 2, 2), n=[0, 1, 5, 3000])
def _gradients(v1, n, x, w):
    out = loop(v1, n, lambda i, a: (v1.tanh(v1.matmul(a, w)) + x,), x)[0]
    return [out, *v1.gradients(out, [x, w])]


@case((1, 0, 2))
def _gradients_of_an_element_that_is_read_twice(v1, rows):
    ta = v1.TensorArray("float32", 5, clear_after_read=False, element_shape=[3]).unstack(rows)

    def body(i, a):
        return (v1.tanh(a) * ta.read(i) + ta.read(i) * 2.0,)

    out = loop(v1, 5, body, rows[0])[0]
    return [out, *v1.gradients(out, [rows])]


@case((1, 0, 2))
def _gradients_of_elements_that_are_read_crosswise(v1, rows):
    ta = v1.TensorArray("float32", 5, clear_after_read=False, element_shape=[3]).unstack(rows)

    def body(i, a):
        return (v1.tanh(a) * ta.read(i) + ta.read(4 - i) * 2.0 + ta.read(0),)

    out = loop(v1, 5, body, rows[0])[0]
    return [out, *v1.gradients(out, [rows])]


@case((2, 0, 2))
def _gradients_of_arrays(v1, rows):
    ta = v1.TensorArray("float32", 5, element_shape=[3]).unstack(rows)

    def body(i, a, t):
        b = v1.tanh(a) * ta.read(i)
        return b, t.write(i, b + a)

    final = loop(v1, 5, body, rows[0], v1.TensorArray("float32", 5, element_shape=[3]))
    whole = final[1].stack()
    return [whole, *v1.gradients(v1.reduce_sum(whole**2.0) + final[0], [rows])]


@case((2, 0, 2))
def _gradients_of_one_element_read_in_every_turn(v1, rows):
    ta = v1.TensorArray("float32", 5, clear_after_read=False, element_shape=[3]).unstack(rows)
    out = loop(v1, 5, lambda i, a: (v1.tanh(a) * ta.read(2),), rows[0])[0]
    return [out, *v1.gradients(out, [rows])]


@case((2, 2, 2), n=[0, 2, 5])
def _an_array_over_two_loops(v1, n, rows):
    first = loop(
        v1, n, lambda i, a, t: (a * 2.0, t.write(i, a)), rows[0], v1.TensorArray("float32", 5, element_shape=[3])
    )
    rest = v1.while_loop(
        lambda i, *_: i < 5, lambda i, a, t: (i + 1, a + 1.0, t.write(i, a)), [n, rows[1], first[1]]
    )  # fmt: skip
    return rest[1], rest[2].stack()


@case((2, 2, 2), before=("init",), n=[0, 1, 4])
def _training(v1, n, x):
    v = v1.get_variable("v", [4, 4], initializer=v1.ones_initializer(), use_resource=True)
    out = loop(v1, n, lambda i, a: (v1.tanh(v1.matmul(a, v.read_value())) * 0.5 + x,), x)[0]
    gradients = v1.gradients(out, [v, x])
    v1.group(v.initializer, name="init")
    with v1.control_dependencies(gradients):
        return out, gradients[1], v.assign_sub(gradients[0] * 0.1)


@case(x=[X, X * 5.0, X * 0.0])
def _turns_that_depend_on_the_data(v1, x):
    return v1.while_loop(
        lambda a, k, more: v1.logical_and(more, k < 100),
        lambda a, k, more: (a * 0.9, k + 1, v1.reduce_sum(a * a) > 0.5),
        [x, v1.constant(0), v1.constant(True)],
    )  # fmt: skip


@case((0, 0, 1))
def _half_precision_is_left_to_the_interpreter(v1, n, x):
    return loop(v1, n, lambda i, a, b: (v1.tanh(a), b * 2), x, v1.cast(x, "float16"))


@case((2, 2, 2))
def _an_array_that_is_read_by_two_loops(v1, rows):
    ta = v1.TensorArray("float32", 5, clear_after_read=False, element_shape=[3]).unstack(rows)
    first = loop(v1, 5, lambda i, a: (v1.tanh(a) + ta.read(i),), rows[0])[0]
    return first, loop(v1, 5, lambda i, a: (v1.tanh(a) * ta.read(4 - i),), first)[0], ta.stack()


@case()
def _constants_on_the_left(v1: Any, x: Any) -> Any:
    left = v1.constant(np.arange(9, dtype=np.float32).reshape(3, 3) / 10 - np.float32(0.4))
    wide = v1.constant(np.linspace(-0.5, 0.5, 27, dtype=np.float32).reshape(3, 9))

    def turn(i: Any, y: Any) -> Any:
        stacked = v1.matmul(wide, v1.concat([y, v1.tanh(y), y * 2.0], 0))
        return i + 1, v1.matmul(left, y, transpose_a=True) + v1.nn.softmax(stacked)

    return v1.while_loop(lambda i, y: i < 5, turn, [0, x])


@case()
def _a_batch_of_constants_on_the_left(v1: Any, x: Any) -> Any:
    left = v1.constant(np.linspace(-0.6, 0.6, 18, dtype=np.float32).reshape(2, 3, 3))

    def turn(i: Any, y: Any) -> Any:
        twice = v1.reshape(v1.concat([y, y], 0), [2, 3, 4])
        return i + 1, v1.reduce_sum(v1.matmul(left, twice), 0)

    return v1.while_loop(lambda i, y: i < 3, turn, [0, x])


def _popped(v1: Any, held: Any) -> Any:
    rest, element = v1.raw_ops.TensorListPopBack(input_handle=held, element_shape=[4], element_dtype=np.float32)
    element.set_shape([4])
    return rest, element


@case()
def _two_elements_a_turn(v1: Any, x: Any) -> Any:
    def turn(i: Any, held: Any, total: Any) -> Any:
        once, last = _popped(v1, held)
        twice, before = _popped(v1, once)
        return i + 1, twice, total + last * before

    start = v1.raw_ops.TensorListFromTensor(tensor=v1.concat([x, x + 1.0], 0), element_shape=[4])
    return v1.while_loop(lambda i, *_: i < 3, turn, [0, start, v1.zeros([4])])[2]


@case(whole=(0, 0, 1))
def _a_list_between_two_changes_goes_on(v1: Any, x: Any) -> Any:
    def turn(i: Any, held: Any, total: Any) -> Any:
        once, last = _popped(v1, held)
        _, before = _popped(v1, once)
        return i + 1, once, total + last * before

    start = v1.raw_ops.TensorListFromTensor(tensor=x, element_shape=[4])
    return v1.while_loop(lambda i, *_: i < 2, turn, [0, start, v1.zeros([4])])[2]
