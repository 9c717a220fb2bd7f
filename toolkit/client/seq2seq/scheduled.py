"""Scheduled sampling: now and then a training step sees what was put out, not what is given (Bengio et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn import batch_and_time_exchanged
from toolkit.client.seq2seq.helpers import TrainingHelper, as_embedding, unstacked
from toolkit.client.seq2seq.sampling import bernoulli_sample, categorical_sample
from toolkit.client.structures import nest
from toolkit.errors import GraphError
from toolkit.graph import dtypes


def _chance(value: TensorLike) -> Tensor:
    found = convert_to_tensor(value, name="sampling_probability")
    if found.static_shape.rank not in (0, 1):
        raise GraphError(f"sampling_probability is a scalar or a vector; it has shape {found.static_shape}")
    return found


def _woven(chosen: Tensor, given: Tensor, sampled: Callable[[Tensor], Tensor]) -> Tensor:
    """The rows of `given` but where `chosen` holds, which are made of their indices [n, 1] by a function."""
    where = math_ops.cast(ops.where(chosen), dtypes.int32)
    elsewhere = math_ops.cast(ops.where(ops.logical_not(chosen)), dtypes.int32)
    kept = ops.gather_nd(given, elsewhere)
    made = sampled(where)
    shape = array_ops.shape(given)
    return ops.scatter_nd(where, made, shape) + ops.scatter_nd(elsewhere, kept, shape)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Some inputs are embeddings of classes that are drawn with the probabilities which the outputs give.

    Samples are those classes, and -1 where the given input is taken.

    Args:
        embedding: a function of class numbers, or a table [classes, size].
        sampling_probability: how often it draws; a scalar, or [batch].
        seed, scheduling_seed: of the classes, and of whether to draw.
    """

    def __init__(
        self, inputs: Any, sequence_length: TensorLike, embedding: Any, sampling_probability: TensorLike,
        time_major: bool = False, seed: int | None = None, scheduling_seed: int | None = None, name: str | None = None,
    ):  # fmt: skip
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper", [sampling_probability]):
            self._embedding_fn = as_embedding(embedding)
            self._sampling_probability = _chance(sampling_probability)
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major=time_major, name=name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            chosen = bernoulli_sample(
                self._sampling_probability, dtypes.bool_, sample_shape=self.batch_size, seed=self._scheduling_seed
            )
            drawn = categorical_sample(outputs, seed=self._seed)
            return array_ops.where(chosen, drawn, ops.fill(array_ops.stack([self.batch_size]), -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **_: Any
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time, outputs, sample_ids]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids, name)

            def mixed() -> Tensor:
                return _woven(
                    ops.greater(sample_ids, -1), given,
                    lambda where: self._embedding_fn(ops.gather_nd(sample_ids, where)),
                )  # fmt: skip

            return finished, cond(math_ops.reduce_all(finished), lambda: given, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Some inputs are outputs of the step before. Samples are 1 where an output is taken.

    Args:
        sampling_probability: how often it is; a scalar, or [batch].
        seed: of whether to take it.
        next_inputs_fn: from outputs to inputs; default: the outputs.
        auxiliary_inputs: [batch, steps, ...], joined with the inputs of every step along the last axis.
    """

    def __init__(
        self, inputs: Any, sequence_length: TensorLike, sampling_probability: TensorLike, time_major: bool = False,
        seed: int | None = None, next_inputs_fn: Callable[[Any], Any] | None = None, auxiliary_inputs: Any = None,
        name: str | None = None,
    ):  # fmt: skip
        with name_scope(name, "ScheduledOutputTrainingHelper", [sampling_probability]):
            self._sampling_probability = _chance(sampling_probability)
            self._auxiliary: Any = None
            if auxiliary_inputs is not None:
                inputs = convert_to_tensor(inputs, name="inputs")
                beside = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = array_ops.concat((inputs, beside), -1)
                self._auxiliary = unstacked(beside if time_major else batch_and_time_exchanged(beside))
            self._seed, self._next_inputs_fn = seed, next_inputs_fn
            super().__init__(inputs, sequence_length, time_major=time_major, name=name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time, *nest.flatten(outputs)]):
            return bernoulli_sample(self._sampling_probability, sample_shape=self.batch_size, seed=self._seed)

    def _joined(self, outputs: Any, time: Any, where: Tensor | None = None) -> Any:
        if self._auxiliary is None:
            return outputs
        beside = self._auxiliary.read(time + 1)
        if where is not None:
            beside = ops.gather_nd(beside, where)
        return array_ops.concat((outputs, beside), -1)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **_: Any
    ) -> tuple[Any, Any, Any]:
        with name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time, outputs, sample_ids]):
            finished, given, state = super().next_inputs(time, outputs, state, sample_ids, name)
            chosen = math_ops.cast(sample_ids, dtypes.bool_)
            convert = self._next_inputs_fn

            def mixed() -> Tensor:
                if convert is None:
                    return array_ops.where(chosen, self._joined(outputs, time), given)
                made = convert

                def sampled(where: Tensor) -> Tensor:
                    return self._joined(made(ops.gather_nd(outputs, where)), time, where)

                return _woven(chosen, given, sampled)

            none = ops.logical_not(math_ops.reduce_any(chosen))
            same = ops.logical_or(math_ops.reduce_all(finished), none)
            return finished, cond(same, lambda: given, mixed), state
