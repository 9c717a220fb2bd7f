"""Attributes that TensorFlow calls private and programs read: values that 1.15 has, and what setting them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.tensorflow import modules

CELL = "tf.nn.rnn_cell.BasicLSTMCell(4)"
SEQ = "tf.contrib.seq2seq"

#: an expression, its private attributes, and what TensorFlow 1.15 has there (numbers that come from tensors: float32)
OF_1_15: list[tuple[str, dict[str, Any]]] = [
    (f"tf.nn.rnn_cell.DropoutWrapper({CELL}, input_keep_prob=0.5, output_keep_prob=0.25)",
     {"_input_keep_prob": 0.5, "_output_keep_prob": 0.25, "_state_keep_prob": 1.0, "_variational_recurrent": False,
      "_input_size": None, "_seed": None}),
    ("tf.nn.rnn_cell.LSTMCell(3, use_peepholes=True, cell_clip=1.0, num_proj=2)",
     {"_num_units": 3, "_use_peepholes": True, "_cell_clip": 1.0, "_initializer": None, "_num_proj": 2,
      "_proj_clip": None, "_num_unit_shards": None, "_num_proj_shards": None, "_forget_bias": 1.0,
      "_state_is_tuple": True, "_state_size": (3, 2), "_output_size": 2}),
    (f"{SEQ}.SampleEmbeddingHelper(tf.zeros([7, 4]), [1, 1], 2, softmax_temperature=2.0)",
     {"_softmax_temperature": 2.0, "_seed": None}),
    (f"{SEQ}.BeamSearchDecoder({CELL}, tf.zeros([7, 4]), [1, 1], 2, {CELL}.zero_state(6, tf.float32), 3, None, 0.5)",
     {"_beam_width": 3, "_length_penalty_weight": 0.5, "_coverage_penalty_weight": 0.0,
      "_reorder_tensor_arrays": True, "_output_layer": None}),
    ("tf.train.GradientDescentOptimizer(0.1)",
     {"_learning_rate": 0.1, "_learning_rate_tensor": None, "_name": "GradientDescent", "_use_locking": False}),
    ("tf.train.AdamOptimizer(0.1)",
     {"_lr": 0.1, "_beta1": 0.9, "_beta2": 0.999, "_epsilon": 1e-08, "_lr_t": None, "_beta1_t": None,
      "_beta2_t": None, "_epsilon_t": None, "_name": "Adam"}),
    ("tf.train.MomentumOptimizer(0.1, 0.9)",
     {"_learning_rate": 0.1, "_momentum": 0.9, "_use_nesterov": False, "_momentum_tensor": None}),
    ("tf.train.AdagradOptimizer(0.1)", {"_learning_rate": 0.1, "_initial_accumulator_value": 0.1}),
    ("tf.train.AdadeltaOptimizer(0.1)", {"_lr": 0.1, "_rho": 0.95, "_epsilon": 1e-08, "_lr_t": None, "_rho_t": None}),
    ("tf.train.RMSPropOptimizer(0.1)",
     {"_learning_rate": 0.1, "_decay": 0.9, "_momentum": 0.0, "_epsilon": 1e-10, "_centered": False,
      "_decay_tensor": None, "_momentum_tensor": None, "_epsilon_tensor": None}),
    ("tf.train.FtrlOptimizer(0.1)",
     {"_learning_rate": 0.1, "_learning_rate_power": -0.5, "_initial_accumulator_value": 0.1,
      "_l1_regularization_strength": 0.0, "_l2_regularization_strength": 0.0,
      "_l2_shrinkage_regularization_strength": 0.0}),
    ("tf.train.ProximalGradientDescentOptimizer(0.1, 0.5)",
     {"_learning_rate": 0.1, "_l1_regularization_strength": 0.5, "_l2_regularization_strength": 0.0}),
    ("tf.train.ProximalAdagradOptimizer(0.1)", {"_learning_rate": 0.1, "_initial_accumulator_value": 0.1}),
    ("tf.contrib.opt.AdamWOptimizer(0.01, 0.1)", {"_lr": 0.1, "_beta1": 0.9, "_weight_decay": 0.01}),
    ("tf.contrib.opt.NadamOptimizer(0.1)", {"_lr": 0.1}),
    ("tf.contrib.opt.LazyAdamOptimizer(0.1)", {"_lr": 0.1}),
    ("tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)",
     {"_replicas_to_aggregate": 2, "_total_num_replicas": 2, "_tokens_per_step": 2}),
    ("tf.train.ExponentialMovingAverage(0.9)",
     {"_decay": 0.9, "_num_updates": None, "_zero_debias": False, "_name": "ExponentialMovingAverage"}),
    ("(tf.Variable(1.0, name='v'), tf.train.Saver())[1]",
     {"_last_checkpoints": [], "_max_to_keep": 5, "_is_built": True, "_is_empty": False, "_allow_empty": False,
      "_pad_step_number": False, "_save_relative_paths": False, "_name": None, "_sharded": False}),
    ("tf.Variable(1.0, name='v')", {"_trainable": True, "_save_slice_info": None}),
    ("tf.variable_scope('a').__enter__()",
     {"_reuse": False, "_name": "a", "_name_scope": "a/", "_initializer": None, "_regularizer": None,
      "_caching_device": None, "_partitioner": None, "_custom_getter": None, "_constraint": None}),
    ("tf.zeros([2, 5])", {"_value_index": 0}),
    ("tf.zeros([2, 5]).op", {"_id": 1, "_control_inputs": []}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "name", "expected"),
    [(expression, name, value) for expression, found in OF_1_15 for name, value in found.items()],
)
def test_values_are_those_of_1_15(expression: str, name: str, expected: Any) -> None:
    with tf.Graph().as_default():
        assert getattr(eval(expression, {"tf": modules.module("")}), name) == expected


def test_optimizers_take_a_rate_that_is_set() -> None:
    """Programs lower the rate before they build another step."""
    with tf.Graph().as_default():
        v = tf.Variable(1.0)
        for optimizer, attribute in (
            (tf.train.GradientDescentOptimizer(0.5), "_learning_rate"),
            (tf.train.AdamOptimizer(0.5), "_lr"),
        ):
            setattr(optimizer, attribute, 0.0)
            step = optimizer.minimize(tf.square(v))
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(step)
                assert session.run(v) == 1.0
            tensor = getattr(optimizer, "_lr_t" if attribute == "_lr" else "_learning_rate_tensor")
            assert isinstance(tensor, tf.Tensor)


def test_subclasses_read_and_set_them() -> None:
    """As published optimizers that extend Adam do."""

    class Halved(tf.train.AdamOptimizer):
        def _prepare(self) -> None:
            super()._prepare()  # type: ignore[misc]
            self._lr_t = tf.convert_to_tensor(self._lr / 2)

    with tf.Graph().as_default():
        ours, wanted = tf.Variable(1.0), tf.Variable(1.0)
        steps = Halved(0.5).minimize(ours), tf.train.AdamOptimizer(0.25).minimize(wanted)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(steps)
            assert session.run(ours) == session.run(wanted) != 1.0


def test_parts_of_graphs() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.Variable([1.0, 2.0], name="v")
        total = tf.add(v, v, name="total")
        assert graph._nodes_by_name["total"] is total.op
        assert graph._nodes_by_id[total.op._id] is total.op
        assert total._op is total.op
        assert total._shape.as_list() == total._shape_as_list() == [2]
        assert (total._rank(), total._shape_tuple()) == (1, (2,))
        unknown = tf.placeholder(tf.float32, [None, 3])
        assert (unknown._shape_tuple(), unknown._shape_as_list()) == ((None, 3), [None, 3])
        assert tf.placeholder(tf.float32)._shape_tuple() is None
        assert v._variable is v._ref() and v._variable.op is v.op
        assert v._snapshot.name == "v/read:0"
        assert v._initializer_op is v.initializer
        assert v._initial_value is v.initial_value
        assert total.op._inputs[:] == list(total.op.inputs)
        value = modules.module("core.framework.attr_value_pb2").AttrValue(b=True)
        total.op._set_attr("_kept", value)
        assert total.op.get_attr("_kept") is True
        total.op._set_device("/device:CPU:0")
        assert total.device == "/device:CPU:0"
        total.op._add_control_input(v.initializer)
        assert [op.name for op in total.op._control_inputs] == [v.initializer.name]
        total.op._remove_all_control_inputs()
        assert total.op._control_inputs == []
        message, version = graph._as_graph_def()
        assert len(message.node) == version == graph._version
        graph.finalize()
        graph._unsafe_unfinalize()
        tf.constant(1)
        with tf.Session() as session:
            assert session._graph is graph


def test_inputs_of_training_helpers() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        helper = tf.contrib.seq2seq.TrainingHelper(np.arange(6.0).reshape(1, 3, 2), [3])
        assert session.run(helper._input_tas.read(1)).tolist() == [[2.0, 3.0]]
        assert session.run(helper._sequence_length).tolist() == [3]
        assert session.run(helper._zero_inputs).tolist() == [[0.0, 0.0]]


def test_the_checkpoints_of_a_saver(tmp_path: Any) -> None:
    """A list of pairs that programs read and take over from another saver."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(1.0)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(session, str(tmp_path / "model"), 1)
        assert [path for path, _ in saver._last_checkpoints] == [str(tmp_path / "model-1")]
        other = tf.train.Saver()
        other._last_checkpoints = list(saver._last_checkpoints)
        assert other.last_checkpoints == saver.last_checkpoints
        assert tf.train.Saver(defer_build=True)._last_checkpoints == []
