"""What a compiled program moves does not move past what changes variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.modes import check_steps, session
from tests.compiler.operations.rows import numbers, positive
from toolkit import client as gm

ops = gm.ops
Build = Callable[[Any], list[Any]]


def _variable(name: str, value: Any, resource: bool) -> Any:
    return gm.get_variable(name, list(value.shape), initializer=gm.initializers.Constant(value), use_resource=resource)


def _after(first: list[Any], function: Callable[[], Any]) -> Any:
    with gm.control_dependencies([getattr(thing, "op", thing) for thing in first]):
        return function()


def _op(thing: Any) -> Any:
    return getattr(thing, "op", thing)


def _product(w: Any) -> list[Any]:
    """relu(x @ w), where w changes between the product and the relu."""
    y = ops.mat_mul(numbers(64, 64) + ops.tanh(w.read_value()) * 0.0, w.read_value())
    write = _op(_after([y], lambda: w.assign_add(numbers(64, 64, seed=2))))
    return [_after([write], lambda: ops.relu(y + 1.0)), _after([write], w.read_value)]


def _both_sides(w: Any) -> list[Any]:
    read = w.read_value()
    y = ops.tanh(read)
    write = _op(_after([y], lambda: w.assign(numbers(64, 64, seed=3))))
    z = _after([write], lambda: ops.mat_mul(w.read_value(), numbers(64, 64)))
    again = _op(_after([z], lambda: w.assign_sub(positive(64, 64))))
    return [_after([again], lambda: ops.relu(z) + y), _after([again], w.read_value)]


def _elementwise(w: Any) -> list[Any]:
    y = ops.sigmoid(w.read_value() * 2.0)
    write = _op(_after([y], lambda: w.assign_add(numbers(64, 64, seed=4))))
    z = _after([write], lambda: ops.neg(y) + 3.0)
    return [z, _after([write, z], w.read_value)]


def _padded(w: Any) -> list[Any]:
    image = ops.reshape(w.read_value() * 1.0, [1, 16, 16, 16])
    padded = ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]])
    write = _op(_after([padded], lambda: w.assign_add(numbers(64, 64, seed=5))))
    y = _after([write], lambda: ops.conv2d(padded, numbers(3, 3, 16, 16), strides=[1, 1, 1, 1], padding="VALID"))
    return [y, _after([write], w.read_value)]


def _renamed(w: Any) -> list[Any]:
    flat = ops.tanh(ops.reshape(w.read_value(), [-1]))
    write = _op(_after([flat], lambda: w.assign_add(numbers(64, 64, seed=6))))
    return [_after([write], lambda: ops.relu(flat)), _after([write], lambda: ops.reshape(w.read_value(), [32, 128]))]


def _gradient(w: Any) -> list[Any]:
    """An update of a variable by its own value."""
    delta = w.read_value() * 0.5 + 1.0
    write = _op(_after([delta], lambda: w.assign_sub(delta)))
    return [_after([write], lambda: ops.tanh(delta) * 2.0), _after([write], w.read_value)]


def _loop(w: Any) -> list[Any]:
    def body(i: Any, total: Any) -> list[Any]:
        y = ops.tanh(ops.mat_mul(total, w.read_value()) * 0.1)
        write = _op(_after([y], lambda: w.assign_add(y)))
        return [i + 1, _after([write], lambda: ops.relu(y) - 0.1)]

    total = gm.while_loop(lambda i, _: i < 3, body, [gm.constant(0), numbers(64, 64)])[1]
    return [total, _after([total], w.read_value)]


def _branch(w: Any) -> list[Any]:
    y = ops.mat_mul(w.read_value(), numbers(64, 64))
    total = ops.sum(y, [0, 1])

    def side(value: float) -> Any:
        write = _op(_after([y], lambda: w.assign_add(np.full((64, 64), value, np.float32))))
        return _after([write], lambda: ops.relu(y) * value)

    made = gm.cond(total > 0.0, lambda: side(0.5), lambda: side(-0.5))
    return [made, _after([made], w.read_value)]


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize(
    "build",
    [_product, _both_sides, _elementwise, _padded, _renamed, _gradient, _loop, _branch],
    ids=lambda f: f.__name__,
)
def test_values_read_before_a_write(build: Build, resource: bool) -> None:
    with gm.Graph().as_default() as graph:
        w = _variable("w", numbers(64, 64), resource)
        made = build(w)
    seen: list[Any] = []

    def step(running: Any) -> list[Any]:
        if not seen or seen[-1] is not running:
            seen.append(running)
            running.run(w.initializer)
        return running.run(made)

    check_steps(graph, step, times=4)


_RULES: dict[str, Callable[..., Any]] = {
    "descent": lambda v, m, s, g: ops.resource_apply_gradient_descent(v, 0.1, g),
    "momentum": lambda v, m, s, g: ops.resource_apply_momentum(v, m, 0.1, g, 0.9),
    "nesterov": lambda v, m, s, g: ops.resource_apply_momentum(v, m, 0.1, g, 0.9, use_nesterov=True),
    "adam": lambda v, m, s, g: ops.resource_apply_adam(v, m, s, 0.9, 0.99, 0.1, 0.9, 0.99, 1e-4, g),
    "adam nesterov": lambda v, m, s, g: ops.resource_apply_adam(
        v, m, s, 0.9, 0.99, 0.1, 0.9, 0.99, 1e-4, g, use_nesterov=True
    ),
    "adagrad": lambda v, m, s, g: ops.resource_apply_adagrad(v, s, 0.1, g),
    "rms": lambda v, m, s, g: ops.resource_apply_rms_prop(v, s, m, 0.1, 0.9, 0.5, 1e-4, g),
    "ftrl": lambda v, m, s, g: ops.resource_apply_ftrl(v, s, m, g, 0.1, 0.01, 0.01, -0.5),
    "adadelta": lambda v, m, s, g: ops.resource_apply_adadelta(v, m, s, 0.1, 0.9, 1e-4, g),
    "proximal": lambda v, m, s, g: ops.resource_apply_proximal_gradient_descent(v, 0.1, 0.01, 0.01, g),
    "sign": lambda v, m, s, g: ops.resource_apply_add_sign(v, m, 0.1, 1.0, 0.1, 0.9, g),
    "max": lambda v, m, s, g: ops.resource_apply_ada_max(v, m, s, 0.9, 0.1, 0.9, 0.99, 1e-4, g),
}


@pytest.mark.parametrize("shape", [(64, 65), (5, 3), (4099,), ()])
@pytest.mark.parametrize("rule", sorted(_RULES))
def test_update_rules(rule: str, shape: tuple[int, ...]) -> None:
    with gm.Graph().as_default() as graph:
        slots = [_variable(name, positive(*shape, seed=n), True) for n, name in enumerate(("v", "m", "s"))]
        g = gm.placeholder(gm.float32, list(shape), name="g")
        v = slots[0].read_value()
        gradient = _after([v], lambda: ops.tanh(g) * 0.5)
        update = _op(_after([v], lambda: _RULES[rule](*[slot.handle for slot in slots], gradient)))
        fetches = [v, gradient, *[_after([update], slot.read_value) for slot in slots]]
    seen: list[Any] = []

    def step(running: Any) -> list[Any]:
        if not seen or seen[-1] is not running:
            seen.append(running)
            running.run([slot.initializer for slot in slots])
        return running.run(fetches, {"g:0": numbers(*shape)})

    check_steps(graph, step, times=3)


@pytest.mark.parametrize("rule", ["descent", "momentum", "adam"])
def test_an_update_by_the_variable_itself(rule: str) -> None:
    with gm.Graph().as_default() as graph:
        slots = [_variable(name, positive(64, 65, seed=n), True) for n, name in enumerate(("v", "m", "s"))]
        value = slots[0].read_value()
        update = _op(_RULES[rule](*[slot.handle for slot in slots], value))
        fetches = [_after([update], slot.read_value) for slot in slots] + [_after([update], lambda: value * 1.0), value]
    seen: list[Any] = []

    def step(running: Any) -> list[Any]:
        if not seen or seen[-1] is not running:
            seen.append(running)
            running.run([slot.initializer for slot in slots])
        return running.run(fetches)

    check_steps(graph, step, times=3)


def test_what_was_fetched_stays_what_it_was() -> None:
    with gm.Graph().as_default() as graph:
        slots = [_variable(name, positive(64, 65, seed=n), True) for n, name in enumerate(("v", "m", "s"))]
        x = gm.placeholder(gm.float32, [64, 65], name="x")
        update = _op(_RULES["momentum"](*[slot.handle for slot in slots], ops.tanh(x)))
        fetches = [_after([update], slots[0].read_value), ops.tanh(x), ops.reshape(ops.tanh(x), [-1]), x * 1.0]
    with session(graph, "compiled") as running:
        running.run([slot.initializer for slot in slots])
        fed = numbers(64, 65)
        first = running.run(fetches, {"x:0": fed})
        kept = [value.copy() for value in first]
        running.run(fetches, {"x:0": -3.0 * fed})
        for value, copy in zip(first, kept, strict=True):
            np.testing.assert_array_equal(value, copy)
        first[0][:] = 0.0  # a caller may write into what it got
        first[1][:] = 0.0
        np.testing.assert_array_equal(running.run(fetches, {"x:0": fed})[1], kept[1])
        np.testing.assert_array_equal(fed, numbers(64, 65))
