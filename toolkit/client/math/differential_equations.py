"""Ordinary differential equations dy/dt = f(y, t), solved within a step (tf.contrib.integrate)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import Assert, cond, while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.math import math_ops
from toolkit.errors import ArgumentValueError, OperandTypeError
from toolkit.graph import dtypes

Function = Callable[[Tensor, Tensor], Any]

# Dormand and Prince, "A family of embedded Runge-Kutta formulae", 1980: where f is asked, what of its answers so far
# the next place is made of; the last row gives the solution of order 5
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
#: what the solution of order 5 differs by from one of lower order
_ERROR = (
    1951 / 21600 - 35 / 384, 0.0, 22642 / 50085 - 500 / 1113, 451 / 720 - 125 / 192, -12231 / 42400 + 2187 / 6784,
    649 / 6300 - 11 / 84, 1 / 60,
)  # fmt: skip
#: the solution in the middle of a step, of order 4; Shampine, "Some Practical Runge-Kutta Formulas", 1986
_MIDDLE = (
    6025192743 / 30085553152 / 2, 0.0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)  # fmt: skip
_ORDER = 5


def _sum(step: Tensor, weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """The weighted slopes, times the step."""
    return math_ops.add_n([step * weight * slope for weight, slope in zip(weights, slopes, strict=True) if weight])


def _check_types(**values: Tensor) -> None:
    for name, value in values.items():
        if not (value.dtype.is_floating or (name == "y0" and value.dtype.is_complex)):
            more = " or complex ones" if name == "y0" else ""
            raise OperandTypeError(f"{name}: expected floats{more}, got {value.dtype}")


def _increasing(t: Tensor) -> Any:
    return Assert(math_ops.reduce_all(ops.greater(t[1:], t[:-1])), ["`t` must be monotonic increasing"])


def _times(t: Any) -> Tensor:
    return t if isinstance(t, Tensor) or hasattr(t, "dtype") else convert_to_tensor(t, dtypes.float64, name="t")


def odeint(
    func: Function, y0: Any, t: Any, rtol: Any = 1e-6, atol: Any = 1e-12, method: Any = None, options: Any = None,
    full_output: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Solve by Dormand and Prince's method, with steps as large as the tolerances allow.

    Args:
        func: gives dy/dt of y and t.
        y0: what y is at t[0], floats or complex numbers of any shape.
        t: increasing times; others than tensors and arrays are taken as float64.
        rtol, atol: each step's error is at most atol + rtol * abs(y), by the root of the mean square.
        method: None or "dopri5".
        options: first_step (1.0), safety (0.9), ifactor (10.0), dfactor (0.2): how a step becomes the next one;
            max_num_steps (1000): at most so many between two times.
        full_output: return a dict of num_func_evals, integrate_points and error_ratio as well.

    Returns:
        y at each time, [times, *shape].

    Raises:
        ValueError: another method; options without a method.
        TypeError: y0 or t are whole numbers; an option is unknown.
    """
    if method not in (None, "dopri5"):
        raise ArgumentValueError(f"method: expected 'dopri5', got {method!r}")
    if options is not None and method is None:
        raise ArgumentValueError("options are those of a method; give `method` as well")
    with name_scope(name, "odeint", [y0, t]):
        y0, t = convert_to_tensor(y0, name="y0"), convert_to_tensor(_times(t), name="t")
        _check_types(y0=y0, t=t)
        real = math_ops.real_type(y0.dtype)
        tolerances = (convert_to_tensor(rtol, real, name="rtol"), convert_to_tensor(atol, real, name="atol"))
        return _adaptive(func, y0, t, *tolerances, _Control(t.dtype, options or {}), full_output)


class _Control:
    """How long steps are, and how many there may be."""

    def __init__(self, dtype: Any, options: Mapping[str, Any]):
        chosen: dict[str, Any] = {"first_step": 1.0, "safety": 0.9, "ifactor": 10.0, "dfactor": 0.2}
        unknown = options.keys() - chosen.keys() - {"max_num_steps"}
        if unknown:
            raise OperandTypeError(f"options: unknown {', '.join(sorted(unknown))}; there are {', '.join(chosen)}")
        chosen |= {key: value for key, value in options.items() if value is not None and key in chosen}
        self.first, self.safety, self.most, self.least = (
            convert_to_tensor(chosen[key], dtype) for key in ("first_step", "safety", "ifactor", "dfactor")
        )
        self.max_num_steps = convert_to_tensor(options.get("max_num_steps", 1000), dtypes.int32)

    def following(self, step: Tensor, ratio: Tensor) -> Tensor:
        """The next step, of one whose error was `ratio` times what it may be."""
        wanted = math_ops.pow(math_ops.cast(ratio, step.dtype), math_ops.cast(1 / _ORDER, step.dtype)) / self.safety
        return step / math_ops.maximum(1 / self.most, math_ops.minimum(wanted, 1 / self.least))


def _adaptive(
    func: Function, y0: Tensor, t: Tensor, rtol: Tensor, atol: Tensor, control: _Control, full_output: bool
) -> Any:
    dtype, count = y0.dtype, array_ops.size(t)

    def step(
        y: Any, slope: Any, before: Any, now: Any, dt: Any, curve: Any, points: Any, ratios: Any, taken: Any
    ) -> Any:
        checks = [
            Assert(ops.greater(now + dt, now), ["underflow in dt", dt]),
            Assert(ops.less(taken, control.max_num_steps), ["max_num_steps exceeded"]),
            Assert(math_ops.reduce_all(ops.is_finite(math_ops.abs(y))), ["non-finite values in state `y`", y]),
        ]
        with control_dependencies(checks):
            length = math_ops.cast(dt, dtype)
            slopes, reached = [slope], y
            for at, weights in zip(_TIMES, _STAGES, strict=True):
                reached = y + _sum(length, weights, slopes)
                slopes.append(convert_to_tensor(func(reached, now + at * dt), dtype))
        size = math_ops.maximum(math_ops.abs(y), math_ops.abs(reached))
        share = math_ops.abs(_sum(length, _ERROR, slopes)) / (atol + rtol * size)
        ratio = math_ops.sqrt(math_ops.reduce_mean(math_ops.square(share)))
        accepted = ops.less_equal(ratio, 1.0)

        def on() -> list[Tensor]:
            return [reached, slopes[-1], now + dt, _curve(y, reached, slopes, length)]

        y, slope, after, curve = cond(accepted, on, lambda: [y, slope, array_ops.identity(now), curve])
        points = points.write(points.size(), array_ops.identity(dt + now))
        ratios = ratios.write(ratios.size(), ratio)
        return y, slope, now, after, control.following(dt, ratio), curve, points, ratios, taken + 1

    def to_next(at: Any, solution: Any, *state: Any) -> Any:
        begun = [*state, constant(0, dtypes.int32)]
        final: list[Any] = while_loop(lambda *now: ops.greater(t[at], now[3]), step, begun)[:-1]
        before, now, curve = final[2], final[3], final[5]
        within = math_ops.cast((t[at] - before) / (now - before), dtype)
        value = curve[0]
        for coefficient in array_ops.unstack(curve, 5)[1:]:
            value = value * within + coefficient
        return at + 1, solution.write(at, value), *final

    with control_dependencies([_increasing(t)]):
        first = array_ops.identity(t[0])
    solution = TensorArray(dtype, size=count).write(0, y0)
    grown = [TensorArray(kind, size=0, dynamic_size=True) for kind in (t.dtype, rtol.dtype)]
    curve = array_ops.stack([y0] * 5)
    slope = convert_to_tensor(func(y0, first), dtype)
    start = [constant(1, dtypes.int32), solution, y0, slope, first, first, control.first, curve, *grown]
    final = while_loop(lambda at, *_: ops.less(at, count), to_next, start)
    found = final[1].stack()
    _set_shape(found, t, y0)
    if not full_output:
        return found
    points = final[-2].stack()
    evaluations = 6 * array_ops.size(points) + 1
    return found, {"num_func_evals": evaluations, "integrate_points": points, "error_ratio": final[-1].stack()}


def _curve(y0: Tensor, y1: Tensor, slopes: Sequence[Tensor], dt: Tensor) -> Tensor:
    """A polynomial of order 4 by a step's ends and middle and the slopes there, highest power first [5, ...]."""
    middle = y0 + _sum(dt, _MIDDLE, slopes)
    f0, f1 = slopes[0] * dt, slopes[-1] * dt
    return array_ops.stack([
        2.0 * (f1 - f0) - 8.0 * (y0 + y1) + 16.0 * middle,
        5.0 * f0 - 3.0 * f1 + 18.0 * y0 + 14.0 * y1 - 32.0 * middle,
        f1 - 4.0 * f0 - 11.0 * y0 - 5.0 * y1 + 16.0 * middle,
        f0, y0,
    ])  # fmt: skip


def _set_shape(found: Tensor, t: Tensor, y0: Tensor) -> None:
    dims = y0.static_shape.dims
    if dims is not None:
        found.set_shape([t.static_shape[0] if t.static_shape.rank == 1 else None, *dims])


def _midpoint(func: Function, t: Tensor, dt: Tensor, y: Tensor) -> Tensor:
    length = math_ops.cast(dt, y.dtype)
    return length * func(y + func(y, t) * length / 2, t + dt / 2)


def _runge_kutta(func: Function, t: Tensor, dt: Tensor, y: Tensor) -> Tensor:
    length, half = math_ops.cast(dt, y.dtype), t + dt / 2
    k1 = func(y, t)
    k2 = func(y + length * k1 / 2, half)
    k3 = func(y + length * k2 / 2, half)
    k4 = func(y + length * k3, t + dt)
    return (k1 + 2 * k2 + 2 * k3 + k4) * (length / 6)


_METHODS = {"midpoint": _midpoint, "rk4": _runge_kutta}


def odeint_fixed(
    func: Function, y0: Any, t: Any, dt: Any = None, method: str = "rk4", name: str | None = None
) -> Tensor:
    """Solve in steps of a given length.

    Args:
        func, y0, t: as for `odeint`.
        dt: how long steps are at most between two times each [times - 1]; None: one step.
        method: "rk4", Runge and Kutta's of order 4, or "midpoint".

    Raises:
        ValueError: another method; sizes do not fit.
        TypeError: y0, t or dt are whole numbers.
    """
    with name_scope(name, "odeint_fixed", [y0, t]):
        t, y0 = convert_to_tensor(_times(t), name="t"), convert_to_tensor(y0, name="y0")
        gaps = t[1:] - t[:-1]
        longest = gaps if dt is None else convert_to_tensor(_times(dt), name="dt")
        _check_types(y0=y0, t=t, dt=longest)
        if (t.static_shape.rank or 1) > 1 or (longest.static_shape.rank or 1) > 1:
            raise ArgumentValueError("t and dt: expected numbers along one dimension")
        sizes = t.static_shape[0], longest.static_shape[0]
        if None not in sizes and (sizes[0] or 0) - 1 != sizes[1]:
            raise ArgumentValueError(f"dt: expected one step less than times ({sizes[0]}), got {sizes[1]}")
        if method not in _METHODS:
            raise ArgumentValueError(f"method: expected one of {', '.join(_METHODS)}, got {method!r}")
        steps = ops.ceil(gaps / longest)
        lengths, steps = gaps / steps, math_ops.cast(steps, dtypes.int32)
        change = _METHODS[method]

        def to_next(at: Any, solution: Any, y: Any, now: Any) -> Any:
            length = lengths[at - 1]

            def step(done: Any, y: Any, now: Any) -> Any:
                return done + 1, y + math_ops.cast(change(func, now, length, y), y.dtype), now + length

            begun = [constant(0, dtypes.int32), y, now]
            _, y, now = while_loop(lambda done, *_: ops.less(done, steps[at - 1]), step, begun)
            return at + 1, solution.write(at, y), y, now

        with control_dependencies([_increasing(t)]):
            count = array_ops.size(t)
        solution = TensorArray(y0.dtype, size=count).write(0, y0)
        start = [constant(1, dtypes.int32), solution, y0, t[0]]
        _, solution, *_ = while_loop(lambda at, *_: ops.less(at, count), to_next, start)
        found = solution.stack()
        _set_shape(found, t, y0)
        return found
