"""Dense layers, dropout, and one axis for all."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.layers.base import InputSpec, Layer, activation_of, last_size
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.graph.shape import Shape

_ZEROS = initializers.Zeros()


class Dense(Layer):
    """activation(inputs @ kernel + bias), over the last axis.

    Raises:
        ValueError: the last size of the inputs is not known.
    """

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS, kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
        trainable: bool = True, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = activation_of(activation)
        self.use_bias = use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        size = last_size(input_shape)
        if size is None:
            raise ValueError("the last size of the inputs is not known; set their shape")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel", [size, self.units], initializer=self.kernel_initializer, regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )  # fmt: skip
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [self.units], initializer=self.bias_initializer, regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )  # fmt: skip

    def call(self, inputs: Any, **_: Any) -> Tensor:
        inputs = convert_to_tensor(inputs)
        rank = inputs.static_shape.rank
        if rank is not None and rank > 2:
            outputs = _along_last(inputs, self.kernel)
            outputs.set_shape([*inputs.static_shape.slice(0, -1), self.units])
        else:
            outputs = math_ops.matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._shown(Shape([*as_shape(input_shape).slice(0, -1), self.units]))


def _along_last(x: Tensor, kernel: Any) -> Tensor:
    """x [..., n] times kernel [n, m], by one product of matrices."""
    shape = x.static_shape
    assert shape.rank is not None
    rank, (rows, columns) = shape.rank, kernel.static_shape.as_list()
    with name_scope("Tensordot", None, [x, kernel]) as scope:
        kernel = convert_to_tensor(kernel, name="b")
        if shape.is_fully_defined:
            outer = shape.as_list()[:-1]
            flat = array_ops.transpose(x, list(range(rank)))
            flat = array_ops.reshape(flat, [math.prod(outer), rows])
            turned = array_ops.reshape(array_ops.transpose(kernel, [0, 1]), [rows, columns])
            product = math_ops.matmul(flat, turned)
            return array_ops.reshape(product, array_ops.constant([*outer, columns], name="shape"), name=scope)
        return _along_last_unknown(x, kernel, rank, rows, columns, scope)


def _along_last_unknown(x: Tensor, kernel: Tensor, rank: int, rows: int, columns: int, scope: str) -> Tensor:
    """The same where sizes of `x` are known only when it runs."""
    axes = array_ops.constant([rank - 1], name="axes")
    free = array_ops.constant(list(range(rank - 1)), name="free")
    sizes = array_ops.shape(x)
    free_sizes = array_ops.gather(sizes, free)
    summed_sizes = array_ops.gather(sizes, axes)
    outer = math_ops.reduce_prod(free_sizes)
    inner = math_ops.reduce_prod(summed_sizes)
    order = array_ops.concat([free, axes], 0)
    flat_shape = array_ops.stack([outer, inner])
    flat = array_ops.reshape(array_ops.transpose(x, order), flat_shape)
    turned = array_ops.reshape(array_ops.transpose(kernel, [0, 1]), [rows, columns])
    product = math_ops.matmul(flat, turned)
    last = array_ops.constant([columns], name="Const_2")
    return array_ops.reshape(product, array_ops.concat([free_sizes, last], 0), name=scope)


class Dropout(Layer):
    """In training, a share of the numbers becomes 0 and the others grow, so that sums stay."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any
    ):
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, **_: Any) -> Tensor:
        inputs = convert_to_tensor(inputs)

        def dropped() -> Tensor:
            return nn_ops.dropout(inputs, rate=self.rate, noise_shape=self.noise_shape, seed=self.seed)

        def kept() -> Tensor:
            return array_ops.identity(inputs)

        if not isinstance(training, Tensor):
            return dropped() if training else kept()
        known = static_value(training)
        if known is not None:
            return dropped() if known else kept()
        return control_flow.cond(training, dropped, kept)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


class Flatten(Layer):
    """All axes but the first as one; channels become the last axis before, if they are the first."""

    def __init__(self, data_format: str | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.data_format = data_format or "channels_last"
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any, **_: Any) -> Tensor:
        inputs = convert_to_tensor(inputs)
        rank = inputs.static_shape.rank
        if self.data_format == "channels_first" and rank is not None and rank > 1:
            inputs = array_ops.transpose(inputs, [0, *range(2, rank), 1])
        before = inputs.static_shape
        first = before[0] if before.rank else None
        outputs = array_ops.reshape(inputs, (array_ops.shape(inputs)[0] if first is None else first, -1))
        outputs.set_shape(as_shape(self.compute_output_shape(before)))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = as_shape(input_shape)
        if not shape.rank:
            return self._shown(Shape(None))
        return self._shown(Shape([shape[0], shape.slice(1).num_elements if shape.rank > 1 else 1]))
