"""The gradient of Einsum: an Einsum of the result's gradient with the other operand, for each operand."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import conj
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops

_ELLIPSIS = "..."


@gradient("Einsum")
def einsum(op: Operation, grad: Tensor) -> list[Gradient]:
    equation: str = op.get_attr("equation").decode().replace(" ", "")
    left, _, out = equation.partition("->")
    terms = left.split(",")
    operands = list(op.inputs)
    if len(operands) == 1:
        return [_operand(operands[0], terms[0], grad, out, None)]
    (x, y), (x_term, y_term) = operands, terms
    return [
        _operand(x, x_term, grad, out, (y, y_term)),
        _operand(y, y_term, grad, out, (x, x_term)),
    ]


def _operand(x: Tensor, term: str, grad: Tensor, out: str, other: tuple[Tensor, str] | None) -> Tensor:
    """The gradient of the operand `x` with labels `term`.

    First the labels that the result or the other operand have, broadcast axes in front; then those axes are summed
    to the operand's own; labels that were summed over are repeated; labels that occur twice become diagonals.
    """
    labels = list(dict.fromkeys(term.replace(_ELLIPSIS, "")))
    known = out + ("" if other is None else other[1])
    kept = "".join(label for label in labels if label in known)
    summed = "".join(label for label in labels if label not in known)
    front = _ELLIPSIS if _ELLIPSIS in known else ""
    if other is None:
        found = _einsum([grad], f"{out}->{front}{kept}")
    else:
        found = _einsum([grad, conj(other[0])], f"{out},{other[1]}->{front}{kept}")
    if front:
        found = _own_front(found, len(kept), x, term)
        front = front if _ELLIPSIS in term else ""
    if summed:
        found = _repeated(found, summed, x, term)
    return _einsum([found], f"{front}{kept}{summed}->{term}")


def _einsum(values: list[Tensor], equation: str) -> Tensor:
    left, _, right = equation.partition("->")
    return values[0] if left == right else ops.einsum(values, equation=equation)


def _own_front(found: Tensor, kept: int, x: Tensor, term: str) -> Tensor:
    """The leading axes that `...` stands for, summed to those of the operand (none, if it has no `...`)."""
    sizes = array_ops.shape(found)
    count = array_ops.size(sizes) - kept
    if _ELLIPSIS not in term:
        return math_ops.reduce_sum(found, math_ops.range(count))
    before = term.index(_ELLIPSIS)
    own_sizes = array_ops.shape(x)
    own_count = array_ops.size(own_sizes) - (len(term) - len(_ELLIPSIS))
    own = array_ops.slice(own_sizes, [before], array_ops.expand_dims(own_count, 0))
    axes, _ = ops.broadcast_gradient_args(own, sizes[:count])
    return array_ops.reshape(math_ops.reduce_sum(found, axes), array_ops.concat([own, sizes[count:]], 0))


def _repeated(found: Tensor, summed: str, x: Tensor, term: str) -> Tensor:
    """New last axes for the labels that the operation summed over."""
    sizes = array_ops.shape(x)
    places = [term.index(label) for label in summed]
    rank = array_ops.size(sizes)
    # what stands behind `...` is counted from the end
    cut = term.find(_ELLIPSIS)
    lengths = [sizes[p] if cut < 0 or p < cut else sizes[rank - (len(term) - p)] for p in places]
    here = array_ops.shape(found)
    ones = constant([1] * len(summed))
    wide = array_ops.reshape(found, array_ops.concat([here, ones], 0))
    return array_ops.broadcast_to(wide, array_ops.concat([here, array_ops.stack(lengths)], 0))
