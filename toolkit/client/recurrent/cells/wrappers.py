"""Cells around cells: embeddings, projections, highways, attention to one's own past."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import device, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.nn.embeddings import embedding_lookup
from toolkit.client.recurrent.cells.linear import last_size, linear
from toolkit.client.recurrent.rnn_cell import RNNCell
from toolkit.client.structures import nest
from toolkit.client.variables.initializers import Constant, RandomUniform
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.errors import UsageError


class _Around(RNNCell):
    """Sizes and states are the inner cell's, unless a subclass says otherwise."""

    def __init__(self, cell: Any, reuse: bool | None = None):
        super().__init__(_reuse=reuse)
        if not callable(cell) or not hasattr(cell, "state_size") or not hasattr(cell, "output_size"):
            raise TypeError(f"{type(self).__name__} takes a cell, not {cell!r}")
        self._cell: Any = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    @property
    def variables(self) -> list[Any]:
        return [*self._variables, *self._cell.variables]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]):
            return self._cell.zero_state(batch_size, dtype)


class EmbeddingWrapper(_Around):
    """Inputs are class numbers, whose vectors the cell sees.

    Raises:
        UsageError: there are no classes, or vectors have no size.
    """

    def __init__(
        self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: bool | None = None
    ):
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise UsageError(f"an EmbeddingWrapper needs classes and a size, not {embedding_classes}, {embedding_size}")
        self._shape, self._initializer = [embedding_classes, embedding_size], initializer

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        bound = math.sqrt(3)  # of a uniform distribution whose variance is 1
        with device("/cpu:0"):
            made = self._initializer or get_variable_scope().initializer or RandomUniform(-bound, bound)
            kind = nest.flatten(state)[0].dtype.base
            table = self.add_variable("embedding", self._shape, kind, made)
            return self._cell(embedding_lookup(table, array_ops.reshape(inputs, [-1])), state)


class InputProjectionWrapper(_Around):
    """Inputs are projected to `num_proj`; `input_size` is of no effect."""

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: bool | None = None
    ):
        super().__init__(cell, reuse)
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        projected = linear([inputs], self._num_proj, cell=self)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class OutputProjectionWrapper(_Around):
    """Outputs are projected to `output_size`.

    Raises:
        UsageError: that is less than 1.
    """

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None):
        super().__init__(cell, reuse)
        if output_size < 1:
            raise UsageError(f"output_size of an OutputProjectionWrapper is at least 1, not {output_size}")
        self._size, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        output, following = self._cell(inputs, state)
        projected = linear([output], self._size, cell=self)
        return (self._activation(projected) if self._activation else projected), following


class HighwayWrapper(_Around):
    """Inputs go on beside outputs, through a gate (Srivastava, Greff, Schmidhuber, arXiv 1505.00387).

    Args:
        couple_carry_transform_gates: outputs get what inputs leave; otherwise a gate of their own.
        carry_bias_init: what the gate's bias begins with.
    """

    def __init__(self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0):
        super().__init__(cell)
        self._coupled, self._bias = couple_carry_transform_gates, carry_bias_init

    def _gate(self, x: Tensor, name: str, bias: float) -> Tensor:
        size = last_size(x)
        weights = get_variable(f"{name}_w", [size, size])
        offset = get_variable(f"{name}_b", [size], initializer=Constant(bias))
        return math_ops.sigmoid(nn_ops.bias_add(math_ops.matmul(x, weights), offset))

    def _joined(self, x: Tensor, out: Tensor) -> Tensor:
        if not x.static_shape.is_compatible_with(out.static_shape):
            raise UsageError(f"a highway needs outputs of the inputs' shape {x.static_shape}, not {out.static_shape}")
        carry = self._gate(x, "carry", self._bias)
        transform = 1 - carry if self._coupled else self._gate(x, "transform", -self._bias)
        return x * carry + out * transform

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """One step; the gates' variables are in the scope that is open."""
        outputs, following = self._cell(inputs, state) if scope is None else self._cell(inputs, state, scope)
        return nest.map_structure(self._joined, inputs, outputs), following


class AttentionCellWrapper(_Around):
    """A cell that looks at its own last `attn_length` outputs (Cheng, Dong, Lapata, arXiv 1601.06733).

    Args:
        attn_size: the size of what is seen, and of outputs; default: the cell's output size.
        attn_vec_size: of what is compared; default: attn_size.
        input_size: what inputs are projected to; default: their size.
        state_is_tuple: the state is (the cell's, what was seen, the past outputs), else one tensor.

    Raises:
        UsageError: no step to look at, or a state that cannot be one tensor.
    """

    def __init__(
        self, cell: Any, attn_length: int, attn_size: int | None = None, attn_vec_size: int | None = None,
        input_size: int | None = None, state_is_tuple: bool = True, reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(cell, reuse)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise UsageError("the cell's state is a tuple; with it, state_is_tuple must be True")
        if attn_length <= 0:
            raise UsageError(f"attn_length is how many steps are looked at, not {attn_length}")
        self._length, self._input_size, self._state_is_tuple = attn_length, input_size, state_is_tuple
        self._size: int = cell.output_size if attn_size is None else attn_size
        self._compared = self._size if attn_vec_size is None else attn_vec_size

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        size, length = self._size, self._length
        if self._state_is_tuple:
            inner, seen, past = state
        else:
            own = self._cell.state_size
            inner = array_ops.slice(state, [0, 0], [-1, own])
            seen = array_ops.slice(state, [0, own], [-1, size])
            past = array_ops.slice(state, [0, own + size], [-1, size * length])
        past = array_ops.reshape(past, [-1, length, size])
        width = last_size(inputs) if self._input_size is None else self._input_size
        output, inner = self._cell(linear([inputs, seen], width, cell=self), inner)
        query = array_ops.concat(nest.flatten(inner), 1) if self._state_is_tuple else inner
        seen, past = self._attention(query, past)
        with variable_scope("attn_output_projection"):
            output = linear([output, seen], size, cell=self)
        past = array_ops.concat([past, array_ops.expand_dims(output, 1)], 1)
        past = array_ops.reshape(past, [-1, length * size])
        following = (inner, seen, past)
        return output, following if self._state_is_tuple else array_ops.concat(list(following), 1)

    def _attention(self, query: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """What is seen of the past, and the past without its oldest step."""
        size, length, compared = self._size, self._length, self._compared
        with variable_scope("attention"):
            kernel = self.add_variable("attn_w", [1, 1, size, compared])
            direction = self.add_variable("attn_v", [compared])
            hidden = array_ops.reshape(past, [-1, length, 1, size])
            features = nn_ops.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            asked = array_ops.reshape(linear([query], compared, cell=self), [-1, 1, 1, compared])
            scores = math_ops.reduce_sum(direction * math_ops.tanh(features + asked), [2, 3])
            shares = array_ops.reshape(nn_ops.softmax(scores), [-1, length, 1, 1])
            seen = math_ops.reduce_sum(shares * hidden, [1, 2])
            return array_ops.reshape(seen, [-1, size]), array_ops.slice(past, [0, 1, 0], [-1, -1, -1])
