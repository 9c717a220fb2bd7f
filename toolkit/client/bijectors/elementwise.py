"""Bijectors of single numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.bijectors.base import Bijector
from toolkit.client.checks.assertions import assert_less_equal, assert_non_negative, assert_none_equal, assert_positive
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.softplus_parameters import softplus_inverse
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import ArgumentValueError


class _OfNumbers(Bijector):
    """A bijector of each number for itself."""

    def __init__(self, validate_args: bool, name: str, is_constant_jacobian: bool = False):
        super().__init__(None, is_constant_jacobian, validate_args, None, 0, name=name)

    def _checked(self, value: Tensor, check: Any, *more: Any, message: str) -> Tensor:
        """A value, with what it has to be checked in the step, where arguments are validated."""
        return with_dependencies([check(value, *more, message=message)], value) if self._validate_args else value


class Identity(_OfNumbers):
    """y = x."""

    def __init__(self, validate_args: bool = False, name: str = "identity"):
        super().__init__(validate_args, name, True)

    def _forward(self, x: Tensor) -> Any:
        return x

    def _inverse(self, y: Tensor) -> Any:
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return constant(0.0, x.dtype.base)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return constant(0.0, y.dtype.base)


class PowerTransform(_OfNumbers):
    """y = (1 + power x) ** (1 / power), which is exp(x) for 0.

    Raises:
        ValueError: the power is negative, or not known now.
    """

    def __init__(self, power: Any = 0.0, validate_args: bool = False, name: str = "power_transform"):
        super().__init__(validate_args, name)
        with self._name_scope("init", [power]):
            known = static_value(convert_to_tensor(power, name="power"))
        if known is None or known < 0:
            raise ArgumentValueError(f"power: expected a constant that is not negative, got {power}")
        self._power = known

    @property
    def power(self) -> Any:
        return self._power

    def _valid(self, x: Tensor) -> Tensor:
        if not self._validate_args or not self._power:
            return x
        message = f"x has to be at least {-1.0 / self._power}"
        return with_dependencies([assert_non_negative(1.0 + self._power * x, message=message)], x)

    def _result(self, y: Tensor) -> Tensor:
        return self._checked(y, assert_positive, message="y has to be positive")

    def _forward(self, x: Tensor) -> Any:
        x = self._valid(x)
        return math_ops.exp(ops.log1p(x * self._power) / self._power) if self._power else math_ops.exp(x)

    def _inverse(self, y: Tensor) -> Any:
        logs = math_ops.log(self._result(y))
        return ops.expm1(logs * self._power) / self._power if self._power else logs

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return (self._power - 1.0) * math_ops.log(self._result(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        x = self._valid(x)
        return (1.0 / self._power - 1.0) * ops.log1p(x * self._power) if self._power else x


class Exp(PowerTransform):
    """y = exp(x)."""

    def __init__(self, validate_args: bool = False, name: str = "exp"):
        super().__init__(0.0, validate_args, name)


class Sigmoid(_OfNumbers):
    """y = 1 / (1 + exp(-x))."""

    def __init__(self, validate_args: bool = False, name: str = "sigmoid"):
        super().__init__(validate_args, name)

    def _forward(self, x: Tensor) -> Any:
        return math_ops.sigmoid(x)

    def _inverse(self, y: Tensor) -> Any:
        return math_ops.log(y) - ops.log1p(-y)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return -math_ops.log(y) - ops.log1p(-y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return -nn_ops.softplus(-x) - nn_ops.softplus(x)


class Softplus(_OfNumbers):
    """y = c log(1 + exp(x / c)).

    Args:
        hinge_softness: c, not zero; 1 by default.
    """

    def __init__(self, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus"):
        super().__init__(validate_args, name)
        self._softness: Tensor | None = None
        if hinge_softness is not None:
            given = convert_to_tensor(hinge_softness, name="hinge_softness")
            zero = constant(0, given.dtype.base)
            self._softness = self._checked(given, assert_none_equal, zero, message="hinge_softness must not be zero")

    @property
    def hinge_softness(self) -> Tensor | None:
        return self._softness

    def _scaled(self, value: Tensor) -> tuple[Tensor, Any]:
        if self._softness is None:
            return value, 1.0
        softness = math_ops.cast(self._softness, value.dtype.base)
        return value / softness, softness

    def _forward(self, x: Tensor) -> Any:
        scaled, softness = self._scaled(x)
        return nn_ops.softplus(x) if self._softness is None else softness * nn_ops.softplus(scaled)

    def _inverse(self, y: Tensor) -> Any:
        scaled, softness = self._scaled(y)
        return softplus_inverse(y) if self._softness is None else softness * softplus_inverse(scaled)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return -math_ops.log(-ops.expm1(-self._scaled(y)[0]))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return -nn_ops.softplus(-self._scaled(x)[0])


class Softsign(_OfNumbers):
    """y = x / (1 + |x|)."""

    def __init__(self, validate_args: bool = False, name: str = "softsign"):
        super().__init__(validate_args, name)

    def _valid(self, y: Tensor) -> Tensor:
        if not self._validate_args:
            return y
        one = constant(1, y.dtype.base)
        below = assert_less_equal(y, one, message="y has to be below 1")
        above = assert_less_equal(-one, y, message="y has to be above -1")
        return with_dependencies([below, above], y)

    def _forward(self, x: Tensor) -> Any:
        return x / (1.0 + math_ops.abs(x))

    def _inverse(self, y: Tensor) -> Any:
        y = self._valid(y)
        return y / (1.0 - math_ops.abs(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return -2.0 * ops.log1p(-math_ops.abs(self._valid(y)))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return -2.0 * ops.log1p(math_ops.abs(x))


class Square(_OfNumbers):
    """y = x ** 2, of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square"):
        super().__init__(validate_args, name)

    def _valid(self, value: Tensor) -> Tensor:
        return self._checked(value, assert_non_negative, message="only numbers that are not negative have one root")

    def _forward(self, x: Tensor) -> Any:
        return math_ops.square(self._valid(x))

    def _inverse(self, y: Tensor) -> Any:
        return math_ops.sqrt(self._valid(y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return np.log(2.0) + math_ops.log(self._valid(x))


class AbsoluteValue(_OfNumbers):
    """y = |x|, which has two preimages."""

    _is_injective = False

    def __init__(self, validate_args: bool = False, name: str = "absolute_value"):
        super().__init__(validate_args, name, True)

    def _valid(self, y: Tensor) -> Tensor:
        return self._checked(y, assert_non_negative, message="an absolute value is not negative")

    def _forward(self, x: Tensor) -> Any:
        return math_ops.abs(x)

    def _inverse(self, y: Tensor) -> Any:
        y = self._valid(y)
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        zero = constant(0.0, self._valid(y).dtype.base)
        return zero, zero


class AffineScalar(_OfNumbers):
    """y = shift + scale x."""

    def __init__(self, shift: Any = None, scale: Any = None, validate_args: bool = False, name: str = "affine_scalar"):
        super().__init__(validate_args, name, True)
        with self._name_scope("init", [scale, shift]):
            self._shift = None if shift is None else convert_to_tensor(shift, name="shift")
            self._scale: Tensor | None = None
            if scale is not None:
                given = convert_to_tensor(scale, name="scale")
                zero = array_ops.zeros([], given.dtype.base)
                self._scale = self._checked(given, assert_none_equal, zero, message="scale must not be zero")

    @property
    def shift(self) -> Tensor | None:
        return self._shift

    @property
    def scale(self) -> Tensor | None:
        return self._scale

    def _forward(self, x: Tensor) -> Any:
        y: Any = array_ops.identity(x)
        y = y if self._scale is None else y * self._scale
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Any:
        x: Any = array_ops.identity(y)
        x = x if self._shift is None else x - self._shift
        return x if self._scale is None else x / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        if self._scale is None:
            return constant(0.0, x.dtype.base)
        return math_ops.log(math_ops.abs(self._scale))


class SinhArcsinh(_OfNumbers):
    """y = sinh((arcsinh(x) + skewness) tailweight) (Jones and Pewsey, 2009)."""

    def __init__(
        self, skewness: Any = None, tailweight: Any = None, validate_args: bool = False, name: str = "SinhArcsinh"
    ):
        super().__init__(validate_args, name)
        with self._name_scope("init", [skewness, tailweight]):
            self._skewness = convert_to_tensor(0.0 if skewness is None else skewness, name="skewness")
            weight = convert_to_tensor(
                1.0 if tailweight is None else tailweight, self._skewness.dtype.base, name="tailweight"
            )
            self._tailweight = self._checked(weight, assert_positive, message="tailweight has to be positive")

    @property
    def skewness(self) -> Tensor:
        return self._skewness

    @property
    def tailweight(self) -> Tensor:
        return self._tailweight

    def _forward(self, x: Tensor) -> Any:
        return ops.sinh((ops.asinh(x) + self._skewness) * self._tailweight)

    def _inverse(self, y: Tensor) -> Any:
        return ops.sinh(ops.asinh(y) / self._tailweight - self._skewness)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        bent = ops.cosh(ops.asinh(y) / self._tailweight - self._skewness)
        return math_ops.log(bent / _root_of_square_and_one(y)) - math_ops.log(self._tailweight)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        bent = ops.cosh((ops.asinh(x) + self._skewness) * self._tailweight)
        return math_ops.log(bent / _root_of_square_and_one(x)) + math_ops.log(self._tailweight)


def _root_of_square_and_one(x: Tensor) -> Tensor:
    """sqrt(x ** 2 + 1); of numbers whose square has no place for the 1, their size."""
    size = math_ops.abs(x)
    is_small = size * np.sqrt(np.finfo(x.dtype.base.numpy).eps) <= 1.0
    return array_ops.where_v2(is_small, math_ops.sqrt(math_ops.square(x) + 1.0), size)


class Gumbel(_OfNumbers):
    """y = exp(-exp(-(x - loc) / scale))."""

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool = False, name: str = "gumbel"):
        super().__init__(validate_args, name)
        with self._name_scope("init", [loc, scale]):
            self._loc, given = convert_to_tensor(loc, name="loc"), convert_to_tensor(scale, name="scale")
            self._scale = self._checked(given, assert_positive, message="scale has to be positive")

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _between(self, y: Tensor) -> Tensor:
        return _in_unit_interval(self, y)

    def _forward(self, x: Tensor) -> Any:
        return math_ops.exp(-math_ops.exp(-(x - self._loc) / self._scale))

    def _inverse(self, y: Tensor) -> Any:
        return self._loc - self._scale * math_ops.log(-math_ops.log(self._between(y)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        y = self._between(y)
        return math_ops.log(self._scale / (-math_ops.log(y) * y))

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        z = (x - self._loc) / self._scale
        return -z - math_ops.exp(-z) - math_ops.log(self._scale)


def _in_unit_interval(bijector: Bijector, value: Tensor) -> Tensor:
    if not bijector.validate_args:
        return value
    one = constant(1, value.dtype.base)
    checks = [
        assert_non_negative(value, message=f"{bijector.name}: the value has to be at least 0"),
        assert_less_equal(value, one, message=f"{bijector.name}: the value has to be at most 1"),
    ]
    return with_dependencies(checks, value)


class Kumaraswamy(_OfNumbers):
    """y = (1 - (1 - x) ** (1 / b)) ** (1 / a), of numbers between 0 and 1: a, b are concentration1 and 0."""

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False,
        name: str = "kumaraswamy",
    ):  # fmt: skip
        super().__init__(validate_args, name)
        with self._name_scope("init", [concentration1, concentration0]):
            self._a = self._positive(concentration1, "concentration1")
            self._b = self._positive(concentration0, "concentration0")

    def _positive(self, given: Any, name: str) -> Tensor:
        return self._checked(convert_to_tensor(given, name=name), assert_positive, message=f"{name} has to be positive")

    @property
    def concentration1(self) -> Tensor:
        return self._a

    @property
    def concentration0(self) -> Tensor:
        return self._b

    def _forward(self, x: Tensor) -> Any:
        x = _in_unit_interval(self, x)
        return math_ops.exp(ops.log1p(-math_ops.exp(ops.log1p(-x) / self._b)) / self._a)

    def _inverse(self, y: Tensor) -> Any:
        y = _in_unit_interval(self, y)
        return math_ops.exp(ops.log1p(-((1 - y**self._a) ** self._b)))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        y = _in_unit_interval(self, y)
        logs = math_ops.log(self._a) + math_ops.log(self._b) + (self._a - 1) * math_ops.log(y)
        return logs + (self._b - 1) * ops.log1p(-(y**self._a))
