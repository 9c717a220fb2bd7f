"""Programs made of choices, for gradients: shared values, broadcasting, rows, functions, conditionals, loops, arrays.

Whoever makes one gives a function that chooses; `Choices` keeps what was chosen, so that the same program can be made
once more with another module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FEEDS = {"x": np.array([[0.3, -0.7], [0.9, 0.1]]), "w": np.array([[0.5, 0.4], [-0.6, 0.8]])}
TABLE = np.array([[0.2, -0.4], [0.7, 0.6], [-0.9, 0.1]])
_UNARY = ("sin", "tanh", "sigmoid", "square", "negative", "transpose", "abs", "cos", "exp", "expm1", "identity", "erf")
_NN = ("softplus", "relu", "softmax", "elu", "log_softmax", "selu")
_BINARY = ("add", "multiply", "subtract", "maximum", "minimum", "squared_difference", "atan2")
_PLAIN = (
    "unary",
    "nn",
    "binary",
    "matmul",
    "reduce",
    "where",
    "gather",
    "look up",
    "join",
    "stop",
    "product",
    "bounded",
)
_DEEP = ("cond", "while", "map", "scan", "array", "custom", "again")


class Choices:
    """Numbers below a limit, as `draw` has them, or those of another time."""

    def __init__(self, draw: Callable[[int], int]):
        self.draw = draw
        self.made: list[int] = []

    def below(self, count: int) -> int:
        self.made.append(self.draw(count))
        return self.made[-1]

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def again(self) -> Choices:
        """The same choices once more."""
        rest = iter([*self.made])
        return Choices(lambda _: next(rest))


class GradientProgram:
    """One program.

    Args:
        functional: control flow is of functions, so that TensorFlow has second derivatives of loops; else there may be
            calls by name, and second derivatives only where there is neither.
    """

    def __init__(self, tf: Any, function: Any, choices: Choices, functional: bool):
        self.tf = tf
        self.function = function
        self.choices = choices
        self.functional = functional
        self.calls = self.loops = 0

    def build(self) -> list[Any]:
        """The tensors to run, made in the default graph: values, first derivatives, second ones."""
        tf, choices = self.tf, self.choices
        xs = [tf.placeholder(tf.float64, [2, 2], name=name) for name in FEEDS]
        self.table = tf.get_variable(
            "table", initializer=TABLE, use_resource=self.functional or choices.of([True, False])
        )
        values = list(xs)
        for _ in range(2 + choices.below(4)):
            values.append(self.step(values, 2))
        ys = [values[-1] * values[choices.below(len(values))], values[-2]]
        options: dict[str, Any] = {}
        method = choices.of([None, None, tf.AggregationMethod.EXPERIMENTAL_TREE, tf.AggregationMethod.ADD_N])
        if method is not None:
            options["aggregation_method"] = method
        if choices.of([False, False, True]):
            options["stop_gradients"] = [values[2]]
        if choices.of([False, True]):
            options["grad_ys"] = [tf.tanh(xs[1]), tf.constant([[0.5, -1.0], [2.0, 0.25]], tf.float64)]
        over = [*xs, self.table]
        first = [tf.convert_to_tensor(g) for g in tf.gradients(ys, over, **options) if g is not None]
        found = [*ys, *first]
        if first and (self.functional or not (self.calls or self.loops)):
            total = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in first])
            found += [tf.convert_to_tensor(g) for g in tf.gradients(total, over) if g is not None]
        return found

    def step(self, values: list[Any], depth: int) -> Any:
        """One more [2, 2], no larger than what it is made of."""
        choices = self.choices
        kinds = [*_PLAIN, *(_DEEP if depth else ())]
        if depth and not self.functional:
            kinds.append("call")
        kind = choices.of(kinds)
        a, b = choices.of(values), choices.of(values)
        return getattr(self, f"_{kind.replace(' ', '_')}")(values, a, b, depth)

    # -- without control flow ------------------------------------------------------------------------------

    def _spread(self, b: Any) -> Any:
        """A tensor as it is, or a part of it that will be broadcast."""
        return self.choices.of([b, b[:1], b[:, 1:], self.tf.reduce_mean(b), b[0], b[:1, 1:]])

    def _unary(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.tanh(getattr(self.tf, self.choices.of(_UNARY))(a) * self.choices.of([0.5, 1.0, -0.75]))

    def _nn(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return getattr(self.tf.nn, self.choices.of(_NN))(a)

    def _binary(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.tanh(getattr(self.tf, self.choices.of(_BINARY))(a, self._spread(b)))

    def _matmul(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        flags = {name: self.choices.of([False, True]) for name in ("transpose_a", "transpose_b")}
        return self.tf.tanh(self.tf.matmul(a, b, **flags))

    def _reduce(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        name = self.choices.of(
            ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_logsumexp"]
        )
        return self.tf.tanh(a - getattr(self.tf, name)(b, self.choices.of([0, 1, -1, [0, 1]]), keepdims=True))

    def _where(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.where(a > b, a, self.tf.sin(b))

    def _gather(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        rows = self.choices.of([[1, 0], [0, 0], [1, 1]])
        return self.tf.gather(a, rows, axis=self.choices.of([0, 1]))

    def _look_up(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        rows = self.choices.of([[2, 0], [1, 1], [0, 1]])
        return self.tf.nn.embedding_lookup(self.table, rows) * a

    def _join(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        tf = self.tf
        return self.choices.of([
            lambda: tf.concat([a, b], 1)[:, 1:3], lambda: tf.stack([a, b], 1)[:, 1], lambda: tf.unstack(a)[0] + b,
            lambda: tf.split(tf.concat([a, b], 0), 2)[1], lambda: tf.pad(a, [[1, 0], [0, 1]])[:2, :2] + b,
            lambda: tf.tile(a[:1], [2, 1]), lambda: tf.reshape(tf.reverse(a, [1]), [2, 2]), lambda: a[::-1, ::-1],
        ])()  # fmt: skip

    def _stop(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.stop_gradient(a) * b

    def _product(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.tanh(self.tf.einsum(self.choices.of(["ij,jk->ik", "ij,ij->ij", "ij,kj->ki"]), a, b))

    def _bounded(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        return self.tf.clip_by_value(a, -0.6, 0.6) + self.tf.cumsum(b, self.choices.of([0, 1])) * 0.5

    # -- functions and control flow ------------------------------------------------------------------------

    def _again(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        """One expression used many times, which makes many gradients meet."""
        shared = self.step(values, depth - 1)
        return self.tf.tanh(shared * a + shared * b - shared)

    def _custom(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        tf = self.tf

        @tf.custom_gradient
        def turned(p: Any) -> Any:
            return tf.sin(p), lambda dy: dy * tf.cos(p) * 0.5

        return turned(a) * b

    def _cond(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        pred = self.tf.reduce_sum(a) > self.choices.of([-0.5, 0.0, 0.5])
        return self.tf.cond(
            pred, lambda: self.step([a, *values], depth - 1), lambda: self.step([b, *values], depth - 1)
        )

    def _while(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        self.loops += 1
        count = 1 + self.choices.below(3)
        return self.tf.while_loop(
            lambda i, _: i < count, lambda i, state: (i + 1, self.step([state, *values], depth - 1)), [0, a]
        )[1]

    def _map(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        self.loops += 1
        name = self.choices.of(["sin", "tanh", "square"])
        return self.tf.map_fn(lambda row: self.tf.tanh(getattr(self.tf, name)(row) * b[0] + row), a)

    def _scan(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        self.loops += 1
        return self.tf.scan(lambda state, row: self.tf.tanh(state * row + b[1]), a)

    def _array(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        """What a recurrent network does: rows read from one array, states written to another."""
        tf = self.tf
        self.loops += 1
        rows, made = tf.TensorArray(tf.float64, 2).unstack(a), tf.TensorArray(tf.float64, 2)

        def body(i: Any, state: Any, out: Any) -> Any:
            state = tf.tanh(rows.read(i) + tf.reduce_sum(b * state, 1))
            return i + 1, state, out.write(i, state)

        return tf.while_loop(lambda i, *_: i < 2, body, [0, b[0], made])[2].stack()

    def _call(self, values: Any, a: Any, b: Any, depth: int) -> Any:
        tf = self.tf
        self.calls += 1

        def body(p: Any, q: Any) -> Any:
            p.set_shape([2, 2])
            q.set_shape([2, 2])
            return tf.tanh(tf.matmul(p, q)) * self.choices.of([p, q])

        named = self.function.Defun(tf.float64, tf.float64, func_name=f"f{self.calls}")(body)
        result = named(a, b)
        result.set_shape([2, 2])
        return result
