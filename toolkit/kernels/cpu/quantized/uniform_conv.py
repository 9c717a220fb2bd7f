"""The shapes of a quantized convolution: which dimension is which, padding, dilation, groups; and its sums."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

from google.protobuf.message import DecodeError

from schemas.uniform_quant_ops_attr_pb2 import UniformQuantizedConvolutionDimensionNumbersAttr
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.types import Array

_Shape = tuple[int, ...]


def _dilated(size: int, dilation: int) -> int:
    return 0 if size == 0 else (size - 1) * dilation + 1


@dataclass(frozen=True, slots=True)
class UniformConvolutionGeometry:
    """A convolution of given shapes.

    Attributes:
        shape: of the result.
        x, w, y: where [batch, feature, *spatial], or [output feature, input feature, *spatial], are found.
        pads: before and after, one pair for each spatial dimension.
        sizes: spatial sizes of the result.
    """

    shape: _Shape
    x: _Shape
    w: _Shape
    y: _Shape
    pads: tuple[tuple[int, int], ...]
    sizes: _Shape
    strides: _Shape
    x_dilation: _Shape
    w_dilation: _Shape
    feature_groups: int
    batch_groups: int

    def check_filter(self, axis: int) -> None:
        require(
            axis in (-1, self.w[0]),
            "rhs_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.kernel_output_feature_dimension "
            "(per-channel).",
        )

    def check_output(self, axis: int) -> None:
        require(
            axis in (-1, self.y[1]),
            "output_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.output_feature_dimension "
            "(per-channel).",
        )

    def left(self, x: Array) -> Array:
        """[batch, feature, *spatial]"""
        return np.transpose(x, self.x)

    def right(self, w: Array) -> Array:
        """[output feature, input feature, *spatial]"""
        return np.transpose(w, self.w)

    def back(self, y: Array) -> Array:
        """A result [batch, feature, *spatial] in the order of the op."""
        return np.transpose(y, np.argsort(self.y))

    def _parts(self, features: int) -> list[tuple[int, int]]:
        """Ranges of output features that share one group of images and one of input features."""
        per = {features // self.feature_groups, features // self.batch_groups}
        return list(pairwise(sorted({at for size in per for at in range(0, features + 1, size)})))

    def spread(self, values: Array, shape: _Shape) -> Array:
        """One value of each image [batch] to where it is used in a result [batch, feature, *spatial]."""
        count, features = shape[:2]
        group = np.arange(features) // (features // self.batch_groups)
        picked = values[group * count + np.arange(count)[:, None]]
        return picked.reshape(count, features, *(1,) * (len(shape) - 2))

    def sums(self, x: Array, w: Array) -> Array:
        """int32 sums of products, wrapping; what is padded is 0."""
        spatial = x.shape[2:]
        wide = [_dilated(n, d) + sum(pad) for n, d, pad in zip(spatial, self.x_dilation, self.pads, strict=True)]
        padded = np.zeros((*x.shape[:2], *wide))
        inside = tuple(
            slice(pad[0], pad[0] + _dilated(n, d), d)
            for n, d, pad in zip(spatial, self.x_dilation, self.pads, strict=True)
        )
        padded[(slice(None), slice(None), *inside)] = x
        count, features = x.shape[0] // self.batch_groups, w.shape[0]
        out = np.zeros((count, features, *self.sizes))
        for start, stop in self._parts(features):
            images = start // (features // self.batch_groups) * count
            inputs = start // (features // self.feature_groups) * w.shape[1]
            taken = padded[images : images + count, inputs : inputs + w.shape[1]]
            out[:, start:stop] = self._group(taken, w[start:stop].astype(np.float64))
        return out.astype(np.int64).astype(np.int32)

    def _group(self, x: Array, w: Array) -> Array:
        """Whole numbers in float64, which are exact below 2**53."""
        total = np.zeros((x.shape[0], w.shape[0], *self.sizes))
        for tap in product(*(range(n) for n in w.shape[2:])):
            window = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, self.w_dilation, self.sizes, self.strides, strict=True)
            )
            values = x[(slice(None), slice(None), *window)]
            total += np.moveaxis(np.tensordot(w[(slice(None), slice(None), *tap)], values, (1, 1)), 0, 1)
        return total


class UniformConvolutionAttributes:
    """What the attributes of a node say.

    Raises:
        InvalidArgumentError: they are malformed.
    """

    def __init__(self, op: KernelNode):
        self.strides = tuple(op.attr("window_strides"))
        self.x_dilation, self.w_dilation = tuple(op.attr("lhs_dilation")), tuple(op.attr("rhs_dilation"))
        self.feature_groups, self.batch_groups = op.attr("feature_group_count"), op.attr("batch_group_count")
        self.padding, self.explicit = op.text("padding"), tuple(op.attr("explicit_padding"))
        require(
            self.padding in ("EXPLICIT", "SAME", "VALID"),
            f"padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {self.padding}",
        )
        require(
            self.padding == "EXPLICIT" or not self.explicit,
            f"If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty, not {list(self.explicit)}",
        )
        self.numbers = UniformQuantizedConvolutionDimensionNumbersAttr()
        try:
            self.numbers.ParseFromString(op.attr("dimension_numbers"))
        except DecodeError:
            raise InvalidArgumentError("Error parsing convolution dimension numbers.", node=op.name) from None

    def geometry(self, x: _Shape, w: _Shape) -> UniformConvolutionGeometry:
        """
        Raises:
            InvalidArgumentError: the shapes do not fit together or to the attributes.
        """
        require(len(x) == len(w), f"lhs and rhs must have same dims. Given lhs and rhs of shapes: {x} {w}")
        require(len(x) > 2, f"lhs and rhs shape dims must be at least 3. Given: {len(x)}")
        spatial = len(x) - 2
        strides = self._each(self.strides, spatial, "window_strides")
        x_dilation = self._each(self.x_dilation, spatial, "lhs_dilation")
        w_dilation = self._each(self.w_dilation, spatial, "rhs_dilation")
        orders = self._orders(len(x))
        self._check_groups([x[d] for d in orders[0][:2]], [w[d] for d in orders[1][:2]])
        inner = [_dilated(x[d], n) for d, n in zip(orders[0][2:], x_dilation, strict=True)]
        outer = [_dilated(w[d], n) for d, n in zip(orders[1][2:], w_dilation, strict=True)]
        pads = self._pads(inner, outer, strides)
        sizes = tuple(-(-(n + sum(pad) - k + 1) // s) for n, pad, k, s in zip(inner, pads, outer, strides, strict=True))
        require(min(sizes) >= 0, f"the result would have the spatial sizes {list(sizes)}")
        first = (x[orders[0][0]] // self.batch_groups, w[orders[1][0]], *sizes)
        shape = tuple(first[orders[2].index(d)] for d in range(len(x)))
        return UniformConvolutionGeometry(
            shape, *orders, pads, sizes, strides, x_dilation, w_dilation, self.feature_groups, self.batch_groups
        )

    def _each(self, given: _Shape, count: int, what: str) -> _Shape:
        require(len(given) in (0, count), f"Size of {what} Attr must be dims - 2.")
        require(all(n >= 1 for n in given), f"All elements of {what} must be >= 1. Given {list(given)}")
        return given or (1,) * count

    def _orders(self, rank: int) -> tuple[_Shape, _Shape, _Shape]:
        n = self.numbers
        if not n.input_spatial_dimensions:
            plain = tuple(range(rank))
            return plain, plain, plain
        orders = (
            (n.input_batch_dimension, n.input_feature_dimension, *n.input_spatial_dimensions),
            (n.kernel_output_feature_dimension, n.kernel_input_feature_dimension, *n.kernel_spatial_dimensions),
            (n.output_batch_dimension, n.output_feature_dimension, *n.output_spatial_dimensions),
        )
        for order in orders:
            require(
                sorted(order) == list(range(rank)),
                f"Each dimension number must be in region [0, rank), once. Given rank {rank} and {list(order)}",
            )
        return orders

    def _check_groups(self, x: list[int], w: list[int]) -> None:
        features, batches = self.feature_groups, self.batch_groups
        require(features > 0, f"feature_group_count must be a positive integer, given: {features}")
        require(
            x[1] % features == 0 and x[1] // features == w[1],
            f"lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension "
            f"size, but {x[1]} / {features} != {w[1]}",
        )
        require(w[0] % features == 0, f"rhs output dimension size {w[0]} must be a multiple of {features}")
        require(batches > 0, f"batch_group_count Attr must be a positive integer. Given: {batches}")
        require(x[0] % batches == 0, f"batch_group_count must divide lhs batch dimension size: {x[0]} / {batches}")
        require(w[0] % batches == 0, f"rhs output dimension size {w[0]} must be a multiple of {batches}")

    def _pads(self, inner: list[int], outer: list[int], strides: _Shape) -> tuple[tuple[int, int], ...]:
        count = len(strides)
        if self.padding == "EXPLICIT":
            require(len(self.explicit) == 2 * count, "Size of explicit_padding Attr must be 2 * (rank - 2).")
            require(min(self.explicit) >= 0, f"All explicit_padding elems must be >= 0, Given {list(self.explicit)}")
            return tuple((self.explicit[2 * i], self.explicit[2 * i + 1]) for i in range(count))
        if self.padding == "VALID":
            return ((0, 0),) * count
        pads: list[tuple[int, int]] = []
        for n, k, s in zip(inner, outer, strides, strict=True):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            pads.append((total // 2, total - total // 2))
        return tuple(pads)
