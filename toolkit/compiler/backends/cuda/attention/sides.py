"""Products around the scores of attention: which axes of their tensors are heads, queries, keys and numbers of these.

Around scores [..., rows, keys] each product has two more tensors: one with a row for each query (queries, results and
the gradients by both), and one with a row for each key (keys, values and the gradients by these). Whichever of the
three it makes, it sums over the axis that is not in this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, Axis, common
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.attention import Attention, AttentionSizes, FourStrides

_BATCHED = ("BatchMatMul", "BatchMatMulV2")
_LEAST_RANK = 2


class Side(NamedTuple):
    """Attributes:
    value: a tensor beside scores.
    order: its axes: those of the scores but the last two, the one of queries or keys, and their numbers.
    """

    value: Value
    order: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many numbers a query, a key or a value has."""
        return (self.value.shape or ())[self.order[-1]]


class Sides(NamedTuple):
    """Attributes:
    rows: the tensor with a row for each query.
    keys: the one with a row for each key.
    """

    rows: Side
    keys: Side


def sides_of(operation: Operation, scores: Value) -> Sides | None:
    """The tensors of a product beside scores, which it takes or makes; None where it is no product of them."""
    if not isinstance(operation, Call) or operation.step.deref or len(operation.outputs) != 1:
        return None
    if len(operation.inputs) != 2 or operation.inputs[0] is operation.inputs[1]:
        return None
    values = [*operation.inputs, operation.output]
    if any(value.shape is None or value.dtype is None or 0 in value.shape for value in values):
        return None
    labels = _labels(operation)
    if labels is None or scores not in values:
        return None
    own = labels.pop(values.index(scores))
    values.remove(scores)
    if len(own) < _LEAST_RANK:
        return None
    *lead, row, key = own
    found: dict[str, Side] = {}
    for value, its, other in zip(values, labels, labels[::-1], strict=True):
        here = [label for label in (row, key) if label in its]
        numbers = [label for label in its if label not in own]
        if len(here) != 1 or len(numbers) != 1 or numbers[0] not in other or not set(lead) <= set(its):
            return None
        if len(its) != len(own):
            return None
        found[here[0]] = Side(value, tuple(its.index(label) for label in (*lead, here[0], numbers[0])))
    return Sides(found[row], found[key]) if len(found) == len(values) else None


def _labels(operation: Operation) -> list[str] | None:
    """A letter for each axis of the operands and the result; None where an axis is broadcast, or it is no product."""
    node, values = operation.step.node, [*operation.inputs, operation.output]
    shapes = [value.shape or () for value in values]
    if operation.op == "Einsum":
        given = node.attr("equation")
        equation = (given.decode(errors="replace") if isinstance(given, bytes) else str(given)).replace(" ", "")
        terms, _, made = equation.partition("->")
        found = [*terms.split(","), made]
    elif operation.op == "MatMul" or operation.op in _BATCHED:
        names = ("transpose_a", "transpose_b") if operation.op == "MatMul" else ("adj_x", "adj_y")
        lead = "".join(chr(ord("a") + at) for at in range(len(shapes[2]) - 2))
        turns = [bool(node.attr(name)) for name in names]
        found = [lead + ("ZX" if turns[0] else "XZ"), lead + ("YZ" if turns[1] else "ZY"), lead + "XY"]
    else:
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(found, shapes, strict=True):
        if len(term) != len(shape) or len(set(term)) != len(term) or not term.isalpha():
            return None
        if any(sizes.setdefault(label, size) != size for label, size in zip(term, shape, strict=True)):
            return None
    return found


class Placed(NamedTuple):
    """A tensor where its elements lie.

    Attributes:
        value: that holds it.
        axes: as `Side.order` has them.
    """

    value: Value
    axes: Axes


class Beside(NamedTuple):
    """What an attention takes besides queries, keys and values.

    Attributes:
        mask, bias: what is added to scores, or (`chosen`) the mask is in the place of those where it is not 0.
        keep: what a dropout leaves of shares, with the factor `kept_scale`.
    """

    mask: Value | None
    bias: Value | None
    keep: Value | None
    chosen: bool
    kept_scale: float


def is_read_in_loops(axes: Axes) -> bool:
    """Whether rows lie at one distance from each other, and their numbers at one, too."""
    return all(len(axis) <= 1 for axis in axes[-2:])


def is_read_in_rows(axes: Axes) -> bool:
    """Whether rows lie at one distance from each other, and their numbers one behind the other."""
    *_, rows, numbers = axes
    return len(rows) <= 1 and (not numbers or (len(numbers) == 1 and numbers[0][1] == 1))


def attention_of(
    tensors: Sequence[tuple[Axes, int]], places: Sequence[Axes | None], beside: Beside,
    sizes: tuple[int, int, int, int], dtype: str, scale: float, *, causal: bool, statistics: bool,
) -> tuple[Attention, list[FourStrides]] | None:  # fmt: skip
    """What is asked of a kernel, and the strides of all tensors; None where axes before the last two are no two loops.

    Args:
        tensors: axes and columns of queries, keys, values, the result, and what gradients have besides.
        places: axes of the first three in `beside`.
        sizes: rows, keys, numbers of a key, numbers of a value.
    """
    others = [(axes, 0, 0) for axes in places if axes is not None]
    found = four_strides([*((axes, columns, 1) for axes, columns in tensors), *others])
    if found is None:
        return None
    batch, heads, strides = found
    beyond = iter(strides[len(tensors) :])
    mask, bias, keep = (None if axes is None else next(beyond) for axes in places)
    strides = strides[: len(tensors)]
    q, k, v, out = strides[:4]
    whole = AttentionSizes(batch, heads, *sizes)
    asked = Attention(
        whole, dtype, scale, q, k, v, out, mask, causal, statistics, bias=bias, chosen=beside.chosen, keep=keep,
        keep_type="" if beside.keep is None else str(beside.keep.dtype), kept_scale=beside.kept_scale,
    )  # fmt: skip
    return asked, strides


def four_strides(
    tensors: Sequence[tuple[Axes, int, int]],
) -> tuple[int, int, list[FourStrides]] | None:
    """Batch, heads, and the strides of tensors along batch, heads, rows and columns.

    Args:
        tensors: of each the axes, the last two of which are rows and columns, and strides for rows and columns where
            there is only one.

    Returns:
        None where the axes before the last two are more than two loops.
    """
    lead = [tuple(factor for axis in axes[:-2] for factor in axis) for axes, _, _ in tensors]
    loops = _in_step([axes[:-2] for axes, _, _ in tensors]) or _in_step([[axis] for axis in lead])
    if loops is None:
        return None
    loops = [(size, strides) for size, strides in loops if size > 1]
    at = len(loops) - 2
    while len(loops) > 2 and at >= 0:
        (outer, far), (inner, near) = loops[at : at + 2]
        if all(one == inner * other for one, other in zip(far, near, strict=True)):
            loops[at : at + 2] = [(outer * inner, near)]
        at -= 1
    if len(loops) > 2:
        return None
    while len(loops) < 2:  # of one place, so that any stride is right
        inner = loops[0] if loops else (1, (0,) * len(tensors))
        loops.insert(0, (1, tuple(inner[0] * stride for stride in inner[1])))
    found: list[FourStrides] = []
    for place, (axes, row, column) in enumerate(tensors):
        rows, columns = (axis[0][1] if axis else alone for axis, alone in zip(axes[-2:], (row, column), strict=True))
        found.append((loops[0][1][place], loops[1][1][place], rows, columns))
    return loops[0][0], loops[1][0], found


def _in_step(axes: Sequence[Sequence[Axis]]) -> list[tuple[int, tuple[int, ...]]] | None:
    """The loops through axes of several tensors together; None where their factors do not divide each other."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for each in zip(*axes, strict=True):
        loops = common(each)
        if loops is None:
            return None
        found += loops
    return found
