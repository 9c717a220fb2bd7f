"""Programs made of a number: arithmetic, variables, conditionals, loops, functions and gradients of all that."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

FEEDS = {"x": np.array([[0.3, -0.7], [0.9, 0.1]]), "w": np.array([[0.5, 0.4], [-0.6, 0.8]])}
_UNARY = ("sin", "tanh", "sigmoid", "square", "negative", "transpose", "abs", "identity", "cos", "exp")
_NN = ("softplus", "relu", "softmax", "elu")
_BINARY = ("add", "multiply", "subtract", "matmul", "maximum", "minimum", "squared_difference")


class Program:
    """One program; making it twice of the same number makes the same nodes.

    Args:
        functions: whether to call functions by name.

    TensorFlow has no second derivatives of functions and loops; test_functional_gradients is about these.
    """

    def __init__(self, tf: Any, function: Any, seed: int, functions: bool):
        self.tf = tf
        self.function = function
        self.rng = random.Random(seed)
        self.functions = functions
        self.made = self.loops = 0

    def build(self) -> list[Any]:
        """The tensors to run, made in the default graph: the last value and derivatives of first and second order."""
        tf, rng = self.tf, self.rng
        xs = [tf.placeholder(tf.float64, [2, 2], name=name) for name in FEEDS]
        values = list(xs)
        if rng.random() < 0.5:
            held = tf.get_variable("held", initializer=np.full((2, 2), 0.75))
            values.append(tf.identity(held))
        for _ in range(rng.randint(2, 5)):
            values.append(self.step(values, 2))
        total = tf.reduce_sum(values[-1] * values[rng.randrange(len(values))])
        grads = tf.gradients(total, xs, stop_gradients=[values[2]] if rng.random() < 0.2 else None)
        found = [total, *(grad for grad in grads if grad is not None)]
        if not self.functions and not self.loops and len(found) > 1 and rng.random() < 0.6:
            found += [grad for grad in tf.gradients(found[1], xs) if grad is not None]
        return found

    def step(self, values: list[Any], depth: int) -> Any:
        """One more value, no larger than those it is made of."""
        tf, rng = self.tf, self.rng
        kinds = ["unary", "unary", "binary", "binary", "nn", "reduce"]
        if depth:
            kinds += ["cond", "while"] + (["call"] if self.functions else [])
        kind = rng.choice(kinds)
        a, b = rng.choice(values), rng.choice(values)
        if kind == "unary":
            return tf.tanh(getattr(tf, rng.choice(_UNARY))(a) * rng.choice([0.5, 1.0, -0.75]))
        if kind == "nn":
            return getattr(tf.nn, rng.choice(_NN))(a)
        if kind == "binary":
            return tf.tanh(getattr(tf, rng.choice(_BINARY))(a, b))
        if kind == "reduce":
            axis = rng.choice([0, 1, -1])
            return a - getattr(tf, rng.choice(["reduce_sum", "reduce_mean", "reduce_max"]))(b, axis, keepdims=True)
        if kind == "cond":
            pred = tf.reduce_sum(a) > rng.choice([-0.5, 0.0, 0.5])
            return tf.cond(pred, lambda: self.step([a, *values], depth - 1), lambda: self.step([b, *values], depth - 1))
        if kind == "call":
            return self.call(a, b, depth)
        self.loops += 1
        count = rng.randint(1, 3)
        return tf.while_loop(
            lambda i, _: i < count, lambda i, state: (i + 1, self.step([state, *values], depth - 1)), [0, a]
        )[1]

    def call(self, a: Any, b: Any, depth: int) -> Any:
        self.made += 1

        def body(p: Any, q: Any) -> Any:
            p.set_shape([2, 2])
            q.set_shape([2, 2])
            return self.step([p, q], 0)

        named = self.function.Defun(self.tf.float64, self.tf.float64, func_name=f"f{self.made}")(body)
        result = named(a, b)
        result.set_shape([2, 2])
        return result
