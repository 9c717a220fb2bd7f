"""Gradients of special functions and of samples by their distributions' parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import reduce_broadcast, shape_of
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops


def _like(value: float, x: Tensor) -> Tensor:
    return constant(np.array(value, x.dtype.base.numpy))


def _at(x: Tensor, place: float, limit: float, other: Callable[[Tensor], Tensor]) -> Tensor:
    """`other(x)`, but `limit` where x is `place` and `other` is not defined."""
    there = ops.equal(x, _like(place, x))
    moved = array_ops.where_v2(there, array_ops.ones_like(x) * _like(place + 1, x), x)
    return array_ops.where_v2(there, array_ops.ones_like(x) * _like(limit, x), other(moved))


#: op to the derivative's factor, as a function of the input x and the output y
_FACTORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "BesselI0": lambda x, y: ops.bessel_i1(x),
    # at 0 TensorFlow has 1, twice what it is
    "BesselI1": lambda x, y: _at(x, 0, 0.5, lambda z: ops.bessel_i0(z) - y / z),
    "BesselI1e": lambda x, y: _at(x, 0, 0.5, lambda z: ops.bessel_i0e(z) - y * (ops.sign(z) + ops.reciprocal(z))),
    "BesselK0": lambda x, y: -ops.bessel_k1(x),
    "BesselK0e": lambda x, y: y - ops.bessel_k1e(x),
    "BesselK1": lambda x, y: -ops.bessel_k0(x) - y / x,
    "BesselK1e": lambda x, y: y * (_like(1, x) - ops.reciprocal(x)) - ops.bessel_k0e(x),
    "BesselJ0": lambda x, y: -ops.bessel_j1(x),
    "BesselJ1": lambda x, y: _at(x, 0, 0.5, lambda z: ops.bessel_j0(z) - y / z),
    "BesselY0": lambda x, y: -ops.bessel_y1(x),
    "BesselY1": lambda x, y: ops.bessel_y0(x) - y / x,
    "Dawsn": lambda x, y: _like(1, x) - _like(2, x) * x * y,
    "Expint": lambda x, y: ops.exp(x) / x,
    "FresnelCos": lambda x, y: ops.cos(_like(math.pi / 2, x) * ops.square(x)),
    "FresnelSin": lambda x, y: ops.sin(_like(math.pi / 2, x) * ops.square(x)),
    "Spence": lambda x, y: _at(x, 1, -1, lambda z: ops.log(z) / (_like(1, z) - z)),
}  # fmt: skip


@gradient(*_FACTORS)
def special(op: Operation, grad: Tensor) -> Gradient:
    with control_dependencies([grad]):
        return grad * _FACTORS[op.type](op.inputs[0], op.outputs[0])


@gradient("Igammac")
def igammac(op: Operation, grad: Tensor) -> list[Gradient]:
    """Igammac is 1 - Igamma."""
    a, x = op.inputs
    ga = -grad * ops.igamma_grad_a(a, x)
    gx = -grad * ops.exp(-x + (a - _like(1, a)) * ops.log(x) - ops.lgamma(a))
    return [*reduce_broadcast(a, x, ga, gx)]


@gradient("Betainc")
def betainc(op: Operation, grad: Tensor) -> list[Gradient]:
    """Only by x: the density of the beta distribution. By a and b TensorFlow gives none either."""
    a, b, x = op.inputs
    one = _like(1, x)
    log_beta = ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)
    density = ops.exp(ops.xlog1py(b - one, -x) + ops.xlogy(a - one, x) - log_beta)
    return [None, None, reduce_broadcast(x, op.outputs[0], grad * density, None)[0]]


@gradient("Zeta")
def zeta(op: Operation, grad: Tensor) -> list[Gradient]:
    """By q; by x there is none."""
    x, q = op.inputs
    by_q = -x * ops.zeta(x + _like(1, x), q)
    return [None, reduce_broadcast(q, op.outputs[0], grad * by_q, None)[0]]


@gradient("Polygamma")
def polygamma(op: Operation, grad: Tensor) -> list[Gradient]:
    n, x = op.inputs
    by_x = ops.polygamma(n + _like(1, n), x)
    return [None, reduce_broadcast(x, op.outputs[0], grad * by_x, None)[0]]


# -- samples ----------------------------------------------------------------------------------------------


def _gamma(alpha: Tensor, sample: Tensor, grad: Tensor) -> Tensor:
    """The gradient of gamma samples by alpha, which stands for the last axes of their shape."""
    sizes = shape_of(alpha)
    extra = array_ops.rank(sample) - array_ops.rank(alpha)
    ones = array_ops.fill(array_ops.expand_dims(extra, 0), constant(1))
    wide = array_ops.reshape(alpha, array_ops.concat([ones, sizes], 0))
    by_alpha = grad * ops.random_gamma_grad(wide, sample)
    return _unbroadcast(alpha, sample, by_alpha)


@gradient("RandomGamma")
def random_gamma(op: Operation, grad: Tensor) -> list[Gradient]:
    """Implicit reparameterisation (Figurnov et al., arXiv 1805.08498), as its op RandomGammaGrad does it."""
    alpha = op.inputs[1]
    return [None, math_ops.reduce_sum(grad * ops.random_gamma_grad(alpha, op.outputs[0]), _leading(op, alpha))]


def _leading(op: Operation, alpha: Tensor) -> Tensor:
    return math_ops.range(array_ops.size(op.inputs[0]))


@gradient("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_random_gamma(op: Operation, grad: Tensor) -> list[Gradient]:
    *rest, alpha = op.inputs
    return [*[None for _ in rest], _gamma(alpha, op.outputs[0], grad)]


def _unbroadcast(x: Tensor, result: Tensor, grad: Tensor) -> Tensor:
    found = reduce_broadcast(x, result, grad, None)[0]
    assert found is not None
    return found
