"""Batch norms, and whatever else scales and shifts channels, folded into the weights of convolutions and products.

Whichever form a normalization has (the fused ops of all versions, BatchNormWithGlobalNormalization, or arithmetic
spelled out), with constant statistics it multiplies and adds one number per channel. Where a convolution with constant
weights makes these channels, its weights take the factors in, and a BiasAdd the sums: the one that is there, or one
in the place of the norm. Where a convolution without padding reads them, its weights take in both. Between the two
may be what treats all channels alike: joined convolutions, BatchToSpaceND, average pools, squeezed dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.nn.channels import (
    AFFINE,
    LAST,
    NORMS,
    WEIGHTED,
    Affine,
    Weighted,
    affine,
    channel_axis,
    per_channel,
    weighted,
)
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, same_device, value_of

Array = Any
#: how many nodes may lie between a norm and its convolutions, all branches of a join together
_MOST_BETWEEN = 256
#: how often one constant takes something in: each time is looked at all of it, and a file may have any chain
_MOST_FOLDS = 64
#: between these, the largest weight of a channel has all its digits and is not infinite, with some room on both sides
_LIMITS = {
    dtypes.float16: (2.0**14, 2.0**-13),
    dtypes.bfloat16: (2.0**126, 2.0**-120),
    dtypes.float32: (2.0**126, 2.0**-120),
    dtypes.float64: (2.0**1022, 2.0**-1000),
}


@dataclass(frozen=True)
class FoldBatchNorms(Optimization):
    """Fold what scales and shifts channels into the weights before or behind it.

    The report has `folded` (nodes that vanished), `biases` (norms that became a BiasAdd) and `training` (names of norms
    left alone because they compute their statistics from the batch).
    """

    name: ClassVar[str] = "fold_batch_norms"

    def apply(self, graph: Graph) -> PassResult:
        return _Folding(Subgraphs(graph, self.kept)).run()


@dataclass(frozen=True, slots=True)
class _Part:
    """The weights in a Const that make some of the channels of a value.

    Attributes:
        const: may have other readers, which all scale what they make of it: then it is copied when it takes something
            in, and what ends up equal is one constant again.
        spec: which of their axes are which.
        channels: those that they make.
        reader: the convolution or product.
    """

    const: Node
    spec: Weighted
    channels: slice
    reader: Node


@dataclass(slots=True)
class _Taking:
    """What can take in a scale of the channels of a value.

    Attributes:
        channels: how many.
        axis: LAST or 1.
        rank: of the value, None where it may be any.
        weights: what is multiplied.
        biases: the BiasAdd nodes whose constants are multiplied as well.
        shifts: whether they are behind all weights, so that they take in a shift; else that needs a new BiasAdd.
    """

    channels: int
    axis: int
    rank: int | None
    weights: list[_Part]
    biases: list[tuple[Node, slice]] = field(default_factory=list["tuple[Node, slice]"])
    shifts: bool = False


@dataclass(slots=True)
class _Pending:
    """The factors that the weights in a Const will be multiplied with: one array each for outputs and inputs."""

    spec: Weighted
    out: Array
    into: Array


class _Folding:
    def __init__(self, found: Subgraphs):
        self.found = found
        self.pending: dict[Node, _Pending] = {}
        self.values: dict[Node, Array] = {}
        self.biases: dict[Node, Array] = {}  # Const to its float64 value to be
        self.folds: dict[Node, int] = {}
        self.folded = 0
        self.made = 0

    def run(self) -> PassResult:
        training: list[str] = []
        left: list[Node] = []
        for node in self.found.each(*AFFINE):
            if node.op in NORMS and node.attr("is_training"):
                training.append(node.name)
                continue
            step = affine(self.found, node)
            if step is not None and not self.found.is_fed(node) and not self._fold_back(step):
                left.append(node)
        for node in reversed(left):  # what is next to the weights comes first
            step = affine(self.found, node)
            if step is not None:
                self._fold_ahead(step)
        self._store()
        report = {"folded": self.folded, "biases": self.made}
        return self.found.result({**report, "training": training} if training else report)

    # -- into what makes the channels --------------------------------------------------------------------

    def _fold_back(self, step: Affine) -> bool:
        node, below = step.node, step.source.node
        if step.scale is None and below.op == "BiasAdd" and node.op == "BiasAdd" and not self.found.is_inner(below):
            return False
        taking = self._taking(step.source, [_MOST_BETWEEN])
        if taking is None or not same_device(node, below):
            return False
        scale, shift = _vectors(step, taking.channels, taking.axis, taking.rank)
        if scale is None and shift is None:
            return False
        if scale is not None and not all(
            self._fits(part.const, part.spec, scale[part.channels]) for part in taking.weights
        ):
            return False
        if scale is None and not taking.shifts:
            return self._as_bias(step, taking, shift)
        if scale is not None:
            for part in taking.weights:
                self._scale_out(part, scale[part.channels])
            for add, channels in taking.biases:
                const = self._own_bias(add)
                self.biases[const] = self.biases[const] * scale[channels]
        if taking.shifts and shift is not None:
            for add, part in _outermost(taking.biases):
                const = self._own_bias(add)
                self.biases[const] = self.biases[const] + shift[part]
        elif shift is not None and shift.any():
            self._add_bias(node, step.source, shift, taking.axis)
            self.made += 1
            return True
        self.found.become(node, below)
        self.folded += 1
        return True

    def _as_bias(self, step: Affine, taking: _Taking, shift: Array | None) -> bool:
        """A constant added per channel is a BiasAdd, which fusions know."""
        given = step.shift
        if step.node.op == "BiasAdd" or shift is None or given is None or given.size != taking.channels:
            return False
        if taking.rank is None and given.ndim != 1:
            return False
        self._add_bias(step.node, step.source, shift, taking.axis)
        self.made += 1
        return True

    def _taking(self, output: Output, budget: list[int]) -> _Taking | None:
        """What makes the channels of a value that only one node reads; None where it cannot take anything in."""
        node, index = output
        budget[0] -= 1
        if budget[0] < 0 or index != 0 or not self.found.is_inner(node) or self.found.is_fed(node):
            return None
        if node.op in WEIGHTED:
            return self._of_weighted(node)
        if node.op == "BiasAdd":
            below = self._taking(node.inputs[0], budget)
            if below is None or channel_axis(node) != below.axis or self.found.constant(node.inputs[1]) is None:
                return None
            value = self.found.array(node.inputs[1])
            if value is None or value.shape != (below.channels,):
                return None
            below.biases = [(node, slice(0, below.channels)), *below.biases]
            below.shifts = True
            return below
        if node.op in ("ConcatV2", "Concat"):
            return self._of_joined(node, budget)
        if node.op in ("BatchToSpaceND", "AvgPool", "AvgPool3D", "Squeeze", "Identity"):
            below = self._taking(node.inputs[0], budget)
            return None if below is None else _through(node, below)
        return None

    def _of_weighted(self, node: Node) -> _Taking | None:
        spec = weighted(node)
        if spec is None:
            return None
        const = self.found.own_constant(node.inputs[spec.weights]) or self._shared_weights(node.inputs[spec.weights])
        if const is None:
            return None
        shape = self._weights(const).shape
        if len(shape) <= max(spec.out):
            return None
        channels = 1
        for axis in spec.out:
            channels *= shape[axis]
        return _Taking(channels, channel_axis(node), spec.rank, [_Part(const, spec, slice(0, channels), node)])

    def _of_joined(self, node: Node, budget: list[int]) -> _Taking | None:
        parts, at = (node.inputs[:-1], node.inputs[-1]) if node.op == "ConcatV2" else (node.inputs[1:], node.inputs[0])
        where = self.found.array(at)
        made = [self._taking(part, budget) for part in parts]
        taking = [part for part in made if part is not None]
        if where is None or where.size != 1 or not taking or len(taking) < len(made):
            return None
        axis, rank = taking[0].axis, taking[0].rank
        if rank is None or any((part.axis, part.rank) != (axis, rank) for part in taking):
            return None
        along_channels = int(where.reshape(())) % rank == axis % rank
        if not along_channels and len({part.channels for part in taking}) != 1:
            return None
        out = _Taking(0, axis, rank, [])
        for part in taking:
            start = out.channels if along_channels else 0
            for each in part.weights:
                channels = slice(each.channels.start + start, each.channels.stop + start)
                out.weights.append(replace(each, channels=channels))
            out.biases += [(n, slice(p.start + start, p.stop + start)) for n, p in part.biases]
            out.channels = start + part.channels
        out.shifts = all(part.shifts for part in taking)
        return out

    def _shared_weights(self, output: Output) -> Node | None:
        """The Const that several read, when all of them make channels of it that are then scaled or shifted: the same
        network once for each signature, or for several inputs."""
        const, found = output.node, self.found
        if const.op != "Const" or found.is_fed(const) or found.is_kept(const):
            return None
        users = found.users(const)
        if len(users) > _MOST_FOLDS:
            return None
        for user in users:
            spec, behind = weighted(user), found.reader(user)
            reads = [at for at, source in enumerate(user.inputs) if source.node is const]
            if reads and (spec is None or reads != [spec.weights] or behind is None or affine(found, behind) is None):
                return None
        return const

    def _scale_out(self, part: _Part, scale: Array) -> None:
        reader, const = part.reader, self.found.own_constant(part.reader.inputs[part.spec.weights])
        if const is None:
            const = self.found.add_constant(f"{reader.name}/folded_weights", self._weights(part.const), [part.const])
            self.values[const] = self._weights(part.const)
            at = part.spec.weights
            self.found.set_inputs(reader, [*reader.inputs[:at], const.output(), *reader.inputs[at + 1 :]])
        pending = self._pending(const, part.spec)
        pending.out = pending.out * scale

    # -- into what reads the channels --------------------------------------------------------------------

    def _fold_ahead(self, step: Affine) -> bool:
        node, found = step.node, self.found
        reader = found.reader(node)
        spec = None if reader is None else weighted(reader)
        if reader is None or spec is None or reader.inputs[spec.data] != node.output() or not same_device(node, reader):
            return False
        if reader.op in ("MatMul", "BatchMatMulV2", "BatchMatMulV3") and (
            reader.attr_or("transpose_a", False) or reader.attr_or("adj_x", False)
        ):
            return False
        const = found.own_constant(reader.inputs[spec.weights])
        if const is None or len(self._weights(const).shape) <= max(*spec.out, *spec.into):
            return False
        channels, axis = self._weights(const).shape[spec.into[0]], channel_axis(reader)
        if step.axis is None and _size(step.scale) == 1 == _size(step.shift) and spec.rank is None:
            return False  # of unknown rank, and all the vectors are scalars
        scale, shift = _vectors(step, channels, axis, spec.rank)
        if scale is None and (shift is None or not (self._bias_behind(reader, axis) or self._scales(step.source))):
            return False  # nothing would be gained
        if shift is not None and not shift.any():
            shift = None
        if shift is not None and _pads(reader, self._weights(const).shape, spec):
            return False
        if scale is not None and not self._fits(const, spec, scale, into=True):
            return False
        inputs = [step.source if source == node.output() else source for source in reader.inputs]
        found.set_inputs(reader, inputs)
        found.wait(reader, node.control_inputs)
        found.let_go([node])
        if shift is not None:
            self._carry_shift(reader, const, spec, shift, axis)
        if scale is not None:
            pending = self._pending(const, spec)
            pending.into = pending.into * scale
        self.folded += 1
        return True

    def _scales(self, output: Output) -> bool:
        """Whether a value is scaled by constants, by a node that would then be next to the weights."""
        step = affine(self.found, output.node) if self.found.is_inner(output.node) else None
        return step is not None and step.scale is not None

    def _bias_behind(self, conv: Node, axis: int) -> Node | None:
        """The BiasAdd of a constant that alone reads a convolution."""
        add = self.found.reader(conv)
        if add is None or add.op != "BiasAdd" or channel_axis(add) != axis or add.inputs[0] != conv.output():
            return None
        value = self.found.array(add.inputs[1])
        return add if value is not None and value.ndim == 1 and not self.found.is_fed(add) else None

    def _carry_shift(self, conv: Node, const: Node, spec: Weighted, shift: Array, axis: int) -> None:
        """Add behind a convolution what it makes of a constant per channel of its input."""
        weights = self._weights(const).astype("float64")
        pending = self._pending(const, spec)
        weights = (
            weights * _along(pending.out, weights.shape, spec.out) * _along(pending.into, weights.shape, spec.into)
        )
        weights = weights * _along(shift, weights.shape, spec.into)
        over = tuple(a for a in range(weights.ndim) if a not in spec.out)
        extra = weights.sum(over).reshape(-1)
        add = self._bias_behind(conv, axis)
        if add is not None:
            bias = self._own_bias(add)
            self.biases[bias] = self.biases[bias] + extra
            return
        inner = self.found.add_copy(conv, f"{conv.name}/convolved", conv.inputs, conv.control_inputs)
        self._add_bias(conv, inner.output(), extra, axis)
        self.made += 1

    # -- constants ---------------------------------------------------------------------------------------

    def _weights(self, const: Node) -> Array:
        import numpy as np

        if const not in self.values:
            value = value_of(const)
            self.values[const] = np.zeros(()) if value is None else value
        return self.values[const]

    def _pending(self, const: Node, spec: Weighted) -> _Pending:
        import numpy as np

        if const not in self.pending:
            self.pending[const] = _Pending(spec, np.ones(()), np.ones(()))
        return self.pending[const]

    def _fits(self, const: Node, spec: Weighted, scale: Array, *, into: bool = False) -> bool:
        """Whether scaled weights stay normal numbers of their type: neither infinite nor of fewer digits."""
        import numpy as np

        weights, pending = self._weights(const), self._pending(const, spec)
        self.folds[const] = self.folds.get(const, 0) + 1
        if self.folds[const] > _MOST_FOLDS or not np.isfinite(scale).all():
            return False
        largest, smallest = _LIMITS[dtypes.from_numpy(weights.dtype)]
        size = np.abs(weights.astype(np.float64))
        for factors, axes in ((pending.out, spec.out), (pending.into, spec.into)):
            size = size * np.abs(_along(factors, weights.shape, axes))
        size = size.max(tuple(a for a in range(size.ndim) if a not in (spec.into if into else spec.out)))
        size = size.reshape(-1)
        scaled = size * np.abs(scale)
        fine = (scaled < largest) & (scaled > smallest)
        return bool((fine | (size == 0) | (scale == 0)).all())

    def _own_bias(self, add: Node) -> Node:
        """The Const that a BiasAdd alone reads, made if others read it as well; its value to be is in `biases`."""
        const = self.found.own_constant(add.inputs[1])
        if const is None:
            shared = self.found.constant(add.inputs[1])
            assert shared is not None
            const = self.found.add_constant(f"{add.name}/folded_bias", value_of(shared), [shared])
            self.found.set_inputs(add, [add.inputs[0], const.output()])
        if const not in self.biases:
            self.biases[const] = value_of(const).astype("float64")
        return const

    def _add_bias(self, node: Node, source: Output, shift: Array, axis: int) -> None:
        """Make a BiasAdd of a node."""
        dtype = node.output_types[0]
        constants = [c for value in node.inputs if (c := self.found.constant(value)) is not None]
        const = self.found.add_constant(f"{node.name}/bias", shift.astype(dtype.numpy), constants)
        self.biases[const] = shift
        layout = b"NCHW" if axis == 1 else b"NHWC"
        self.found.make(node, "BiasAdd", [source, const.output()], {"T": dtype, "data_format": layout})

    def _store(self) -> None:
        for const, pending in self.pending.items():
            weights = self.values[const]
            scaled = weights.astype("float64") * _along(pending.out, weights.shape, pending.spec.out)
            scaled *= _along(pending.into, weights.shape, pending.spec.into)
            if not pending.out.ndim == pending.into.ndim == 0:
                self.found.set_value(const, scaled.astype(weights.dtype))
        for const, bias in self.biases.items():
            self.found.set_value(const, bias.astype(const.attr("dtype").numpy))


def _outermost(biases: list[tuple[Node, slice]]) -> list[tuple[Node, slice]]:
    """Of several BiasAdds, one behind the other, the last."""
    found: dict[tuple[int, int], tuple[Node, slice]] = {}
    for add, part in biases:
        found.setdefault((part.start, part.stop), (add, part))
    return list(found.values())


def _vectors(step: Affine, channels: int, axis: int, rank: int | None) -> tuple[Array | None, Array | None]:
    """Scale and shift as one number per channel; both None where they are not."""
    import numpy as np

    if step.axis is not None and step.axis != axis:
        return None, None
    out: list[Array | None] = []
    for array in (step.scale, step.shift):
        if array is None:
            out.append(None)
            continue
        given = np.asarray(array)
        if step.axis is None:
            vector = per_channel(given, channels, axis, rank)
        else:
            vector = given.astype(np.float64) if given.shape == (channels,) else None
        if vector is None:
            return None, None
        out.append(vector)
    return out[0], out[1]


def _along(factors: Array, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Factors as an array that is broadcast against weights: along the axes that make (or meet) the channels."""
    if factors.ndim == 0:
        return factors
    return factors.reshape([size if axis in axes else 1 for axis, size in enumerate(shape)])


def _through(node: Node, below: _Taking) -> _Taking | None:
    """The same behind an op that treats channels alike."""
    if node.op == "Identity":
        return below
    if node.op == "Squeeze":
        dims: list[int] = node.attr("squeeze_dims")
        if below.rank is None or not dims or below.axis != LAST or below.rank - 1 in (d % below.rank for d in dims):
            return None
        below.rank -= len({d % below.rank for d in dims})
        return below
    if node.op == "BatchToSpaceND":
        return below if below.axis == LAST else None
    sizes: list[int] = node.attr("ksize")
    return below if channel_axis(node) == below.axis and sizes[below.axis] == 1 else None


def _pads(node: Node, shape: tuple[int, ...], spec: Weighted) -> bool:
    """Whether a convolution may see zeros beside its input, which a shift of the input does not reach."""
    if not spec.windows:
        return False
    if spec.data == 2:
        return True  # a transposed convolution: its borders see fewer inputs
    padding: bytes = node.attr("padding")
    if padding == b"VALID":
        return False
    if padding == b"EXPLICIT":
        return any(node.attr("explicit_paddings"))
    return any(shape[axis] != 1 for axis in spec.windows)


def _size(array: Array | None) -> int:
    return 1 if array is None else array.size


__all__ = ["FoldBatchNorms"]
