"""Convolutions of one to three dimensions, transposed and separable."""

from __future__ import annotations

from typing import Any, ClassVar

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers.base import InputSpec, Layer, activation_of
from toolkit.client.layers.pooling import numbers
from toolkit.client.nn import convolutions, nn_ops
from toolkit.client.nn.space_to_batch import with_space_to_batch
from toolkit.client.variables import initializers

_ZEROS = initializers.Zeros()
#: layouts of the ops, by the number of dimensions: channels last and first
_LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class _Convolution(Layer):
    """What all convolutions have: a kernel, a bias, an activation.

    Raises:
        ValueError: the number of channels is not known.
    """

    count: ClassVar[int]
    op: ClassVar[str]
    #: whether windows may have holes
    dilates: ClassVar[bool] = True

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any, padding: str, data_format: str, dilation_rate: Any,
        activation: Any, use_bias: bool, kernel_initializer: Any, bias_initializer: Any, kernel_regularizer: Any,
        bias_regularizer: Any, activity_regularizer: Any, kernel_constraint: Any, bias_constraint: Any,
        trainable: bool, name: str | None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.filters = filters
        self.kernel_size = numbers(kernel_size, self.count, "kernel_size")
        self.strides = numbers(strides, self.count, "strides")
        self.padding, self.data_format = padding.lower(), data_format.lower()
        if self.padding not in ("valid", "same", "causal"):
            raise ValueError(f"padding: expected valid, same or causal, got {padding!r}")
        if self.data_format not in ("channels_last", "channels_first"):
            raise ValueError(f"data_format: expected channels_first or channels_last, got {data_format!r}")
        self.dilation_rate = numbers(dilation_rate, self.count, "dilation_rate")
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=self.count + 2)
        self.kernel: Any = None
        self.bias: Any = None
        self._rate: Any = None

    @property
    def channels_first(self) -> bool:
        return self.data_format == "channels_first"

    @property
    def layout(self) -> str:
        """The data format of the op."""
        return _LAYOUTS[self.count][self.channels_first]

    def _channels(self, input_shape: Any) -> int:
        size = as_shape(input_shape)[1 if self.channels_first else -1]
        if size is None:
            raise ValueError("the number of channels of the inputs is not known; set their shape")
        self.input_spec = InputSpec(ndim=self.count + 2, axes={1 if self.channels_first else -1: size})
        return size

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight(
            "kernel", self._kernel_shape(self._channels(input_shape)), initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer, constraint=self.kernel_constraint,
        )  # fmt: skip
        self._build_bias()
        if self.dilates:
            self._rate = constant(list(self.dilation_rate), name="dilation_rate")

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.filters], initializer=self.bias_initializer, regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )  # fmt: skip

    def call(self, inputs: Any, **_: Any) -> Tensor:
        outputs = self._convolved(convert_to_tensor(inputs))
        if self.use_bias:
            outputs = self._with_bias(outputs)
        return outputs if self.activation is None else self.activation(outputs)

    def _convolved(self, x: Tensor) -> Tensor:
        rates = list(self.dilation_rate)
        padding: Any = self.padding.upper()
        if padding == "CAUSAL":
            before = rates[0] * (self.kernel_size[0] - 1)
            x, padding = array_ops.pad(x, [[0, 0], [before, 0], [0, 0]]), "VALID"
        kernel = convert_to_tensor(self.kernel)

        def convolved(x: Any, _: int, kind: Any) -> Tensor:
            name = "conv1d" if self.count == 1 else self.op
            return convolutions.plain(x, kernel, list(self.strides), kind, self.layout, name, self.count)

        if all(each == 1 for each in rates):
            return convolved(x, self.count, padding)
        return with_space_to_batch(x, self._rate, padding, convolved, kernel.static_shape, None, self.layout)

    def _with_bias(self, x: Tensor) -> Tensor:
        if not self.channels_first:
            return nn_ops.bias_add(x, self.bias)
        if self.count == 1:
            return x + array_ops.reshape(self.bias, (1, self.filters, 1))
        if self.count == 2:
            return nn_ops.bias_add(x, self.bias, "NCHW")
        sizes = list(x.static_shape)
        first = -1 if sizes[0] is None else sizes[0]
        flat = array_ops.reshape(x, [first, sizes[1], (sizes[2] or 1) * (sizes[3] or 1), sizes[4]])
        return array_ops.reshape(nn_ops.bias_add(flat, self.bias, "NCHW"), [first, *sizes[1:]])


class Conv1D(_Convolution):
    """A convolution over [batch, width, channels]."""

    count, op = 1, "conv1d"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = _ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class Conv2D(_Convolution):
    """A convolution over [batch, height, width, channels]."""

    count, op = 2, "Conv2D"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = (1, 1), activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = _ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class Conv3D(_Convolution):
    """A convolution over [batch, depth, height, width, channels]."""

    count, op = 3, "Conv3D"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = (1, 1, 1), activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
        kernel_constraint: Any = None, bias_constraint: Any = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class _Transposed(_Convolution):
    """The gradient of a convolution by its input, as a layer that grows."""

    dilates = False

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def _sizes(self, x: Tensor) -> Tensor:
        """The shape of the output, as a tensor."""
        shape = array_ops.shape(x)
        start = 2 if self.channels_first else 1
        batch = shape[0]
        space = [shape[start + axis] for axis in range(self.count)]
        grown: list[Any] = []
        for size, kernel, step in zip(space, self.kernel_size, self.strides, strict=True):
            length: Any = size * step
            if self.padding == "valid":
                length = length + max(kernel - step, 0)
            grown.append(length)
        parts = [batch, self.filters, *grown] if self.channels_first else [batch, *grown, self.filters]
        return array_ops.stack(parts)

    def _static_sizes(self, x: Tensor) -> list[int | None]:
        start = 2 if self.channels_first else 1
        grown: list[int | None] = []
        for axis, (kernel, step) in enumerate(zip(self.kernel_size, self.strides, strict=True)):
            size = x.static_shape[start + axis]
            extra = max(kernel - step, 0) if self.padding == "valid" else 0
            grown.append(None if size is None else size * step + extra)
        batch = x.static_shape[0]
        return [batch, self.filters, *grown] if self.channels_first else [batch, *grown, self.filters]

    def _steps(self) -> list[int]:
        return [1, 1, *self.strides] if self.channels_first else [1, *self.strides, 1]


class Conv2DTranspose(_Transposed):
    """A transposed convolution over [batch, height, width, channels]."""

    count, op = 2, "conv2d_transpose"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = _ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, kernel_initializer,
            bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def _convolved(self, x: Tensor) -> Tensor:
        sizes = self._sizes(x)
        _ = sizes[0]  # TensorFlow looks at the batch size once more
        found = nn_ops.conv2d_transpose(
            x, self.kernel, sizes, list(self.strides), self.padding.upper(), self.layout
        )  # fmt: skip
        found.set_shape(self._static_sizes(x))
        return found


class Conv3DTranspose(_Transposed):
    """A transposed convolution over [batch, depth, height, width, channels]."""

    count, op = 3, "conv3d_transpose"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
        data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = _ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, kernel_initializer,
            bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def _convolved(self, x: Tensor) -> Tensor:
        found = convolutions.conv3d_transpose(
            x, convert_to_tensor(self.kernel), self._sizes(x), self._steps(), self.padding.upper(), self.layout
        )
        found.set_shape(self._static_sizes(x))
        return found


class _Separable(_Convolution):
    """A convolution of each channel on its own, then one of 1 over the channels."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any, padding: str, data_format: str, dilation_rate: Any,
        depth_multiplier: int, activation: Any, use_bias: bool, depthwise_initializer: Any,
        pointwise_initializer: Any, bias_initializer: Any, depthwise_regularizer: Any, pointwise_regularizer: Any,
        bias_regularizer: Any, activity_regularizer: Any, depthwise_constraint: Any, pointwise_constraint: Any,
        bias_constraint: Any, trainable: bool, name: str | None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, None,
            bias_initializer, None, bias_regularizer, activity_regularizer, None, bias_constraint, trainable, name,
            **kwargs,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer
        self.depthwise_regularizer, self.pointwise_regularizer = depthwise_regularizer, pointwise_regularizer
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        channels = self._channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer, regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )  # fmt: skip
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", [*([1] * self.count), channels * self.depth_multiplier, self.filters],
            initializer=self.pointwise_initializer, regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )  # fmt: skip
        self._build_bias()


class SeparableConv2D(_Separable):
    """A separable convolution over [batch, height, width, channels]."""

    count, op = 2, "separable_conv2d"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None, bias_initializer: Any = _ZEROS, depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
        depthwise_constraint: Any = None, pointwise_constraint: Any = None, bias_constraint: Any = None,
        trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation, use_bias,
            depthwise_initializer, pointwise_initializer, bias_initializer, depthwise_regularizer,
            pointwise_regularizer, bias_regularizer, activity_regularizer, depthwise_constraint, pointwise_constraint,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def _convolved(self, x: Tensor) -> Tensor:
        steps = [1, 1, *self.strides] if self.channels_first else [1, *self.strides, 1]
        return convolutions.separable_conv2d(
            x, self.depthwise_kernel, self.pointwise_kernel, steps, self.padding.upper(), self.dilation_rate,
            data_format=self.layout,
        )  # fmt: skip


class SeparableConv1D(_Separable):
    """A separable convolution over [batch, width, channels]."""

    count, op = 1, "separable_conv1d"

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1, activation: Any = None,
        use_bias: bool = True, depthwise_initializer: Any = None, pointwise_initializer: Any = None,
        bias_initializer: Any = _ZEROS, depthwise_regularizer: Any = None, pointwise_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, depthwise_constraint: Any = None,
        pointwise_constraint: Any = None, bias_constraint: Any = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation, use_bias,
            depthwise_initializer, pointwise_initializer, bias_initializer, depthwise_regularizer,
            pointwise_regularizer, bias_regularizer, activity_regularizer, depthwise_constraint, pointwise_constraint,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip

    def _convolved(self, x: Tensor) -> Tensor:
        axis = 2 if self.channels_first else 1
        step = self.strides[0]
        steps = [1, 1, step, step] if self.channels_first else [1, step, step, 1]
        layout = "NCHW" if self.channels_first else "NHWC"
        wide = array_ops.expand_dims(x, axis)
        depthwise = array_ops.expand_dims(self.depthwise_kernel, 0)
        pointwise = array_ops.expand_dims(self.pointwise_kernel, 0)
        found = convolutions.separable_conv2d(
            wide, depthwise, pointwise, steps, self.padding.upper(), (1, *self.dilation_rate), data_format=layout
        )
        if self.use_bias:
            found = nn_ops.bias_add(found, self.bias, layout)
        return array_ops.squeeze(found, [axis])

    def _with_bias(self, x: Tensor) -> Tensor:
        return x  # added before the axis was dropped
