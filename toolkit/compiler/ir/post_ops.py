"""What is done to each number that an operation has computed before it is written: post-ops, in order.

A convolution followed by a bias, a residual and a relu is one operation with three post-ops; the sums never leave the
registers.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolkit.compiler.ir.fields import parts
from toolkit.compiler.ir.value import Value

if TYPE_CHECKING:
    from toolkit.compiler.ir.operation import Operation


class UnaryFunction(enum.Enum):
    """Functions of one number with up to two parameters, alpha and beta."""

    RELU = enum.auto()  # x where it is positive, else alpha * x
    TANH = enum.auto()
    ELU = enum.auto()  # x where it is positive, else alpha * (e^x - 1)
    SQUARE = enum.auto()
    ABS = enum.auto()
    SQRT = enum.auto()
    LINEAR = enum.auto()  # alpha * x + beta
    SOFT_RELU = enum.auto()  # log(1 + e^(alpha * x)) / alpha
    LOGISTIC = enum.auto()
    GELU_TANH = enum.auto()
    GELU_ERF = enum.auto()
    SWISH = enum.auto()  # x * logistic(alpha * x)
    CLIP = enum.auto()  # into [alpha, beta]
    CLIP_V2 = enum.auto()  # the same, with slope 0 at the bounds
    POW = enum.auto()  # alpha * x^beta
    ROUND = enum.auto()  # to the nearest whole number, halves to the even one
    HARD_SWISH = enum.auto()  # x * clip(alpha * x + beta, 0, 1)


class BinaryFunction(enum.Enum):
    """Functions of two numbers."""

    ADD = enum.auto()
    SUB = enum.auto()
    MUL = enum.auto()
    DIV = enum.auto()
    MAX = enum.auto()
    MIN = enum.auto()


@dataclass(frozen=True, slots=True)
class Apply:
    """x becomes function(x; alpha, beta)."""

    function: UnaryFunction
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Combine:
    """x becomes function(x, other), with `other` broadcast to x."""

    function: BinaryFunction
    other: Value


PostOp = Apply | Combine


def operands_of(post_ops: Iterable[PostOp]) -> list[Value]:
    """The tensors that post-ops take, constants among them."""
    return [post.other for post in post_ops if isinstance(post, Combine)]


def post_ops_of(operation: Operation) -> Sequence[PostOp]:
    """What is done to the numbers that an operation computes; nothing where it takes no post-ops."""
    return getattr(operation, "post_ops", ())


def post_operations(*, default: Any = ()) -> Any:
    """Declares the post-ops of an operation; tensors in them that are computed are among its operands."""
    return parts(value_in=_operand, with_value=_with, default=default)


def _operand(post: PostOp) -> Value | None:
    return post.other if isinstance(post, Combine) and not post.other.is_constant else None


def _with(post: PostOp, other: Value) -> PostOp:
    assert isinstance(post, Combine)
    return replace(post, other=other)
