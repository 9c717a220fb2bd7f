"""Calls of TensorFlow's functions that have to make the same nodes here and there, a file for each family.

A file's `CALLS` maps a canonical name (without "tf.") to expressions. What they may use: `tf`, `np`, and placeholders
`f(2, 3)` (float32), `d` (float64), `i` (int32), `l` (int64), `b` (bool), `s` (string), `c` (complex64) of that shape.
Functions that are one op get their calls from the op's definition, in test_nodes.
"""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def separated(text: str) -> list[str]:
    """The calls of a text, each of one or more lines, with a line of three dashes between two."""
    return text.strip("\n").split("\n---\n")


_PLACES = dict.fromkeys(
    """
    get_default_graph dtypes.as_dtype reset_default_graph op_scope device colocate_with control_dependencies container init_scope
    add_to_collection add_to_collections get_collection get_collection_ref graph_util.import_graph_def is_tensor
    register_tensor_conversion_function get_default_session broadcast_static_shape dimension_value
    dimension_at_index edit_distance make_tensor_proto make_ndarray get_static_value
    """.split(),  # noqa: SIM905 (one line for each would be long)
    "scopes, collections and what returns no tensor: test_framework",
)

_SILENT = dict.fromkeys(
    """
    all_variables app.run control_flow_v2_enabled disable_control_flow_v2 disable_eager_execution
    disable_resource_variables disable_tensor_equality disable_v2_behavior disable_v2_tensorshape
    enable_resource_variables executing_eagerly executing_eagerly_outside_functions fixed_size_partitioner
    get_logger get_variable_scope gfile.Copy gfile.DeleteRecursively gfile.Exists gfile.Glob gfile.IsDirectory
    gfile.ListDirectory gfile.MakeDirs gfile.MkDir gfile.Remove gfile.Rename gfile.Stat gfile.Walk
    global_variables initializers.he_normal initializers.he_uniform initializers.lecun_normal
    initializers.lecun_uniform io.gfile.copy io.gfile.exists io.gfile.glob io.gfile.isdir io.gfile.join
    io.gfile.listdir io.gfile.makedirs io.gfile.mkdir io.gfile.remove io.gfile.rename io.gfile.rmtree
    io.gfile.stat io.gfile.walk io.write_graph local_variables logging.TaskLevelStatusMessage logging.debug
    logging.error logging.fatal logging.flush logging.get_verbosity logging.info logging.log logging.log_every_n
    logging.log_first_n logging.log_if logging.set_verbosity logging.vlog logging.warn logging.warning
    min_max_variable_partitioner model_variables moving_average_variables no_gradient no_regularizer
    random.get_seed random.set_random_seed resource_variables_enabled test.get_temp_dir test.gpu_device_name
    test.is_built_with_cuda test.is_gpu_available test.main test.test_src_dir_path train.NewCheckpointReader
    train.checkpoint_exists train.export_meta_graph train.get_checkpoint_state train.get_global_step
    train.global_step train.import_meta_graph train.latest_checkpoint train.list_variables train.load_checkpoint
    train.load_variable data.get_output_classes data.get_output_shapes data.get_output_types io.tf_record_iterator
    train.queue_runner.add_queue_runner train.summary_iterator train.queue_runner.start_queue_runners
    trainable_variables variable_axis_size_partitioner
    """.split(),  # noqa: SIM905 (one line for each would be long)
    "adds no node, or is part of the programs of test_programs",
)

_COUNTED = dict.fromkeys(
    ("custom_gradient", "grad_pass_through", "nn.silu", "nest.is_nested"),
    "TensorFlow counts custom gradients in an attribute, and structures make no nodes: tests/client",
)

_MESSAGES = dict.fromkeys(
    """
    saved_model.build_signature_def saved_model.build_tensor_info saved_model.classification_signature_def
    saved_model.contains_saved_model saved_model.get_tensor_from_tensor_info saved_model.is_valid_signature
    saved_model.predict_signature_def saved_model.regression_signature_def
    """.split(),  # noqa: SIM905 (as above)
    "makes messages or asks files: test_saved_model",
)

_SESSIONS = dict.fromkeys(
    ("train.MonitoredTrainingSession", "train.assert_global_step", "train.basic_train_loop"),
    "sessions, loops and checks: test_monitored_sessions, test_supervisor",
)

_VALUES = {"ragged.constant_value": "gives a value, no tensor: test_ragged"}

_RUN = dict.fromkeys(
    """
    py_func numpy_function py_function recompute_grad switch_case vectorized_map is_symbolic_tensor
    enable_control_flow_v2 enable_tensor_equality enable_v2_tensorshape nn.ctc_loss_v2
    graph_util.convert_variables_to_constants graph_util.extract_sub_graph graph_util.must_run_on_cpu
    graph_util.remove_training_nodes graph_util.tensor_shape_from_node_def_name nest.assert_same_structure nest.flatten
    nest.map_structure nest.pack_sequence_as
    """.split(),  # noqa: SIM905 (one line for each would be long)
    "nodes of its own, or none; values are compared in test_python_functions, test_graph_parts",
)

#: functions that have no calls here, and where they are tested
ELSEWHERE: dict[str, str] = {**_PLACES, **_SILENT, **_COUNTED, **_MESSAGES, **_SESSIONS, **_VALUES, **_RUN}
