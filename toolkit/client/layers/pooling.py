"""Pools: the largest value, or the mean, of each window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, ClassVar, cast

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers.base import InputSpec, Layer
from toolkit.client.nn import nn_ops, pooling


def numbers(value: Any, count: int, what: str) -> tuple[int, ...]:
    """One number for each dimension of the space.

    Raises:
        ValueError: there are more or fewer, or one is no number.
    """
    try:  # sizes of a TensorShape and NumPy's integers are whole numbers, too
        given = (
            tuple(index(each) for each in cast("Any", value))
            if isinstance(value, Iterable)
            else (index(value),) * count
        )
    except TypeError:
        given = ()
    if len(given) != count:
        raise ValueError(f"{what}: expected {count} whole numbers, got {value}")
    return given


def _with_batch_and_channels(channels_first: bool) -> Callable[[Sequence[int]], list[int]]:
    """What makes a window over all axes of one over the space."""
    return (lambda sizes: [1, 1, *sizes]) if channels_first else (lambda sizes: [1, *sizes, 1])


class _Pooling(Layer):
    """A pool over `count` dimensions by one function of the client."""

    count: ClassVar[int]
    pool: ClassVar[Callable[..., Tensor]]
    #: layouts of the op, channels last and first
    layouts: ClassVar[tuple[str, str]]

    def __init__(
        self, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
        name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(name=name, **kwargs)
        self.pool_size = numbers(pool_size, self.count, "pool_size")
        self.strides = numbers(pool_size if strides is None else strides, self.count, "strides")
        self.padding, self.data_format = padding.lower(), data_format.lower()
        self.input_spec = InputSpec(ndim=self.count + 2)

    def call(self, inputs: Any, **_: Any) -> Tensor:
        first = self.data_format == "channels_first"
        window, steps = list(self.pool_size), list(self.strides)
        around = _with_batch_and_channels(first)
        return type(self).pool(
            convert_to_tensor(inputs), around(window), around(steps), self.padding.upper(), self.layouts[first]
        )


class _Pooling1D(_Pooling):
    """A pool over one dimension, as one over two."""

    count = 1
    layouts = ("NHWC", "NCHW")

    def call(self, inputs: Any, **_: Any) -> Tensor:
        first = self.data_format == "channels_first"
        axis = 2 if not first else 3
        wide = array_ops.expand_dims(inputs, axis)
        window, steps = (*self.pool_size, 1), (*self.strides, 1)
        around = _with_batch_and_channels(first)
        found = type(self).pool(wide, around(window), around(steps), self.padding.upper(), self.layouts[first])
        return array_ops.squeeze(found, axis)


class MaxPooling1D(_Pooling1D):
    """The largest of each window over [batch, width, channels]."""

    pool = staticmethod(nn_ops.max_pool)


class AveragePooling1D(_Pooling1D):
    """The mean of each window over [batch, width, channels]."""

    pool = staticmethod(nn_ops.avg_pool)


class MaxPooling2D(_Pooling):
    """The largest of each window over [batch, height, width, channels]."""

    count, layouts = 2, ("NHWC", "NCHW")
    pool = staticmethod(nn_ops.max_pool)


class AveragePooling2D(_Pooling):
    """The mean of each window over [batch, height, width, channels]."""

    count, layouts = 2, ("NHWC", "NCHW")
    pool = staticmethod(nn_ops.avg_pool)


class MaxPooling3D(_Pooling):
    """The largest of each window over [batch, depth, height, width, channels]."""

    count, layouts = 3, ("NDHWC", "NCDHW")
    pool = staticmethod(pooling.max_pool3d)


class AveragePooling3D(_Pooling):
    """The mean of each window over [batch, depth, height, width, channels]."""

    count, layouts = 3, ("NDHWC", "NCDHW")
    pool = staticmethod(pooling.avg_pool3d)
