"""Where the inputs of a BasicDecoder come from: given sequences, or what it has put out itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.math import math_ops
from toolkit.client.nn import embeddings
from toolkit.client.recurrent.rnn import batch_and_time_exchanged
from toolkit.client.seq2seq.sampling import categorical_sample
from toolkit.client.structures import nest
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: class numbers to their vectors
Embedding = Callable[[Any], Any]


class Helper:
    """What a BasicDecoder asks: `initialize()` for the first inputs, `sample(...)` what to take of an output, and
    `next_inputs(...)`, which returns (finished, next inputs, next state)."""

    @property
    def batch_size(self) -> Any:
        """How many sequences there are, an int32 scalar."""
        raise NotImplementedError("a helper needs batch_size")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample, without the batch axis."""
        raise NotImplementedError("a helper needs sample_ids_shape")

    @property
    def sample_ids_dtype(self) -> Any:
        raise NotImplementedError("a helper needs sample_ids_dtype")

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], inputs of the first step)."""
        raise NotImplementedError("a helper needs initialize()")

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What is taken of the outputs."""
        raise NotImplementedError("a helper needs sample(time, outputs, state)")

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished [batch], next inputs, next state)."""
        raise NotImplementedError("a helper needs next_inputs(time, outputs, state, sample_ids)")


def unstacked(values: Tensor) -> TensorArray:
    """The rows of a tensor as an array."""
    shape = values.static_shape
    inner = shape.slice(1) if shape.rank is not None else None
    return TensorArray(values.dtype.base, array_ops.shape(values)[0], element_shape=inner).unstack(values)


def as_embedding(given: Any) -> Embedding:
    """A function from class numbers to vectors, from one or from a table."""
    return given if callable(given) else lambda ids: embeddings.embedding_lookup(given, ids)


def vector(value: TensorLike, name: str) -> Tensor:
    """int32 [batch].

    Raises:
        GraphError: it is no vector.
    """
    found = convert_to_tensor(value, dtypes.int32, name=name)
    if found.static_shape.rank != 1:
        raise GraphError(f"{name} is a vector, one for each sequence; it has shape {found.static_shape}")
    return found


def scalar(value: TensorLike, name: str) -> Tensor:
    """An int32 scalar.

    Raises:
        GraphError: it is none.
    """
    found = convert_to_tensor(value, dtypes.int32, name=name)
    if found.static_shape.rank != 0:
        raise GraphError(f"{name} is a scalar; it has shape {found.static_shape}")
    return found


class _Numbers(Helper):
    """Helpers whose samples are class numbers."""

    _batch_size: Any

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return as_shape([])

    @property
    def sample_ids_dtype(self) -> DType:
        return dtypes.int32


class CustomHelper(Helper):
    """A helper of three functions.

    Args:
        initialize_fn: () -> (finished, first inputs).
        sample_fn: (time=, outputs=, state=) -> samples.
        next_inputs_fn: (time=, outputs=, state=, sample_ids=) -> (finished, next inputs, next state).
        sample_ids_shape, sample_ids_dtype: of samples without the batch axis; default: int32 scalars.
    """

    def __init__(
        self, initialize_fn: Callable[..., Any], sample_fn: Callable[..., Any], next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None, sample_ids_dtype: DTypeLike = None,
    ):  # fmt: skip
        self._initialize_fn, self._sample_fn, self._next_inputs_fn = initialize_fn, sample_fn, next_inputs_fn
        self._batch_size: Any = None
        self._shape = as_shape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = dtypes.int32 if sample_ids_dtype is None else as_dtype(sample_ids_dtype)

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise UsageError("a CustomHelper knows its batch_size once initialize() has been called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = array_ops.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, f"{type(self).__name__}Sample"):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, f"{type(self).__name__}NextInputs"):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(_Numbers):
    """Inputs are given for all steps (teacher forcing); samples are the largest of the outputs, and only looked at.

    Args:
        inputs: [batch, steps, ...], or a structure; [steps, batch, ...] with `time_major`.
        sequence_length: int32 [batch].

    Raises:
        GraphError: sequence_length is no vector.
    """

    def __init__(self, inputs: Any, sequence_length: TensorLike, time_major: bool = False, name: str | None = None):
        with name_scope(name, "TrainingHelper", [*nest.flatten(inputs), sequence_length]):
            inputs = nest.map_structure(lambda each: convert_to_tensor(each, name="inputs"), inputs)
            self._inputs = inputs
            if not time_major:
                inputs = nest.map_structure(batch_and_time_exchanged, inputs)
            self._input_tas: Any = nest.map_structure(unstacked, inputs)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.static_shape.rank != 1:
                raise GraphError(
                    f"sequence_length is a vector [batch]; it has shape {self._sequence_length.static_shape}"
                )
            self._zero_inputs: Any = nest.map_structure(lambda each: array_ops.zeros_like(each[0, :]), inputs)
            self._batch_size = array_ops.size(sequence_length)

    @property
    def inputs(self) -> Any:
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        return self._sequence_length

    def _read(self, time: Any, finished: Tensor) -> Any:
        return cond(
            math_ops.reduce_all(finished), lambda: self._zero_inputs,
            lambda: nest.map_structure(functools.partial(_at, time), self._input_tas),
        )  # fmt: skip

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with name_scope(name, "TrainingHelperInitialize"):
            finished = ops.equal(0, self._sequence_length)
            return finished, self._read(0, finished)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        with name_scope(name, "TrainingHelperSample", [time, *nest.flatten(outputs)]):
            return math_ops.cast(math_ops.argmax(outputs, -1), dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **_: Any
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "TrainingHelperNextInputs", [time, *nest.flatten(outputs)]):
            following = time + 1
            finished = ops.greater_equal(following, self._sequence_length)
            return finished, self._read(following, finished), state


def _at(time: Any, array: TensorArray) -> Tensor:
    return array.read(time)


class GreedyEmbeddingHelper(_Numbers):
    """The next input is the embedding of the class with the largest output.

    Args:
        embedding: a function of class numbers, or a table [classes, size].
        start_tokens: int32 [batch], what the first step sees.
        end_token: the class that ends a sequence.

    Raises:
        GraphError: start_tokens is no vector, or end_token no scalar.
    """

    def __init__(self, embedding: Any, start_tokens: TensorLike, end_token: TensorLike):
        self._embedding_fn = as_embedding(embedding)
        self._start_tokens = vector(start_tokens, "start_tokens")
        self._end_token = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        self._batch_size = array_ops.size(start_tokens)
        scalar(self._end_token, "end_token")
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return array_ops.tile([False], array_ops.stack([self._batch_size])), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return math_ops.argmax(_one(outputs), -1, output_type=dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = ops.equal(sample_ids, self._end_token)
        inputs = cond(math_ops.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids))
        return finished, inputs, state


def _one(outputs: Any) -> Tensor:
    if not isinstance(outputs, Tensor):
        raise TypeError(f"classes are chosen from one tensor of outputs, not from {type(outputs).__name__}")
    return outputs


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The next input is the embedding of a class that is drawn with the probabilities which the outputs give.

    Args:
        softmax_temperature: divides the outputs: above 1, draws are more even.
        seed: of the draws.
    """

    def __init__(
        self, embedding: Any, start_tokens: TensorLike, end_token: TensorLike, softmax_temperature: Any = None,
        seed: int | None = None,
    ):  # fmt: skip
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        logits = _one(outputs)
        if self._softmax_temperature is not None:
            logits = logits / self._softmax_temperature
        return categorical_sample(logits, seed=self._seed)


class InferenceHelper(Helper):
    """What is put out goes in again, through functions.

    Args:
        sample_fn: outputs -> samples.
        sample_shape, sample_dtype: of samples without the batch axis.
        start_inputs: [batch, ...], what the first step sees.
        end_fn: samples -> which sequences are over, bool [batch].
        next_inputs_fn: samples -> inputs; default: the samples.
    """

    def __init__(
        self, sample_fn: Callable[[Any], Any], sample_shape: Any, sample_dtype: DTypeLike, start_inputs: TensorLike,
        end_fn: Callable[[Any], Any], next_inputs_fn: Callable[[Any], Any] | None = None,
    ):  # fmt: skip
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._sample_shape, self._sample_dtype = as_shape(sample_shape), as_dtype(sample_dtype)
        self._batch_size = array_ops.shape(start_inputs)[0]
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> DType:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return array_ops.tile([False], array_ops.stack([self._batch_size])), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
