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
    ("custom_gradient", "grad_pass_through", "nn.silu", "nest.is_nested", "type_spec_from_value"),
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

_COLUMNS = dict.fromkeys(
    (
        "feature_column.make_parse_example_spec",
        *(
            f"feature_column.sequence_categorical_column_with_{kind}"
            for kind in ("hash_bucket", "identity", "vocabulary_file", "vocabulary_list")
        ),
        "feature_column.sequence_numeric_column",
    ),
    "makes no nodes, or those of a layer that TensorFlow has dropped: tests/client/test_feature_columns",
)

_SESSIONS = dict.fromkeys(
    ("train.MonitoredTrainingSession", "train.assert_global_step", "train.basic_train_loop"),
    "sessions, loops and checks: test_monitored_sessions, test_supervisor",
)
_PROFILES = dict.fromkeys(
    ("profiler.profile", "profiler.write_op_log"), "look at graphs and runs, and make no nodes: test_profiler"
)
_MACHINE = dict.fromkeys(
    """
    test.assert_equal_graph_def test.compute_gradient test.compute_gradient_error test.create_local_cluster
    test.is_built_with_gpu_support test.is_built_with_rocm test.is_built_with_xla test.is_cpu_target_available
    test.with_eager_op_as_function test.disable_with_predicate test.benchmark_config config.experimental_connect_to_cluster
    config.experimental_connect_to_host config.experimental_functions_run_eagerly
    config.experimental_run_functions_eagerly config.functions_run_eagerly config.get_logical_device_configuration
    config.get_soft_device_placement config.get_visible_devices config.list_logical_devices
    config.list_physical_devices config.optimizer.get_experimental_options config.optimizer.get_jit
    config.optimizer.set_experimental_options config.optimizer.set_jit config.run_functions_eagerly
    config.set_logical_device_configuration config.set_soft_device_placement config.set_visible_devices
    config.threading.get_inter_op_parallelism_threads config.threading.get_intra_op_parallelism_threads
    config.threading.set_inter_op_parallelism_threads config.threading.set_intra_op_parallelism_threads
    config.experimental.get_device_policy config.experimental.get_memory_growth
    config.experimental.get_synchronous_execution config.experimental.set_device_policy
    config.experimental.set_memory_growth config.experimental.set_synchronous_execution
    config.experimental_list_devices debugging.get_log_device_placement debugging.set_log_device_placement
    resource_loader.get_data_files_path resource_loader.get_path_to_datafile
    resource_loader.get_root_dir_with_all_resources resource_loader.load_resource resource_loader.readahead_file_path
    sysconfig.get_build_info sysconfig.get_compile_flags sysconfig.get_include sysconfig.get_lib
    sysconfig.get_link_flags errors.exception_type_from_error_code errors.error_code_from_exception_type
    train.generate_checkpoint_state_proto train.update_checkpoint_state train.get_checkpoint_mtimes
    train.remove_checkpoint train.checkpoints_iterator
    """.split(),  # noqa: SIM905 (as above)
    "tests, machines and files: test_testing",
)

_WRITTEN = dict.fromkeys(
    ("summary.initialize", "summary.all_v2_summary_ops", "summary.get_summary_description"),
    "about ops that write, or their messages: test_contrib_summary",
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
ELSEWHERE: dict[str, str] = {
    **_PLACES, **_SILENT, **_COUNTED, **_MESSAGES, **_SESSIONS, **_MACHINE, **_VALUES, **_RUN, **_COLUMNS,
    **_PROFILES, **_WRITTEN,
}  # fmt: skip
