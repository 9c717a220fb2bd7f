"""tf.contrib.framework: scopes of arguments, variables of models, checkpoints, structures."""

HOMES: dict[str, str] = {
    "toolkit.client.inputs.bucketed": "contrib.training.bucket contrib.training.bucket_by_sequence_length",
    "toolkit.client.inputs.sampled": """
        contrib.training.rejection_sample contrib.training.stratified_sample contrib.training.resample_at_rate
        contrib.training.weighted_resample
    """,
    "toolkit.tensorflow.families.contrib.task_strategies": """
        contrib.training.RandomStrategy contrib.training.GreedyLoadBalancingStrategy contrib.training.byte_size_load_fn
    """,
    "toolkit.tensorflow.families.contrib.predictor": """
        contrib.predictor.from_estimator contrib.predictor.from_saved_model
    """,
    "toolkit.client.argument_scopes": """
        contrib.framework.add_arg_scope contrib.framework.arg_scope contrib.framework.arg_scoped_arguments
        contrib.framework.current_arg_scope contrib.framework.has_arg_scope contrib.slim.arg_scope_func_key
    """,
    "toolkit.client.variables.model_variables": """
        contrib.framework.variable contrib.framework.model_variable contrib.framework.local_variable
        contrib.framework.global_variable contrib.framework.add_model_variable contrib.framework.get_variables
        contrib.framework.get_model_variables contrib.framework.get_local_variables
        contrib.framework.get_trainable_variables contrib.framework.get_variables_by_suffix
        contrib.framework.get_variables_by_name contrib.framework.get_unique_variable
        contrib.framework.get_variable_full_name contrib.framework.get_variables_to_restore
        contrib.framework.filter_variables contrib.framework.assign_from_values
        contrib.framework.assign_from_values_fn
    """,
    "toolkit.client.checks.shape_checks": """
        contrib.framework.reduce_sum_n contrib.framework.remove_squeezable_dimensions
        contrib.framework.with_same_shape contrib.framework.with_shape contrib.framework.assert_scalar_int
    """,
    "toolkit.tensorflow.families.contrib.framework": """
        contrib.framework.assert_global_step contrib.framework.assert_or_get_global_step
        contrib.framework.get_global_step contrib.framework.create_global_step
        contrib.framework.get_or_create_global_step contrib.framework.load_checkpoint
        contrib.framework.load_variable contrib.framework.list_variables contrib.framework.assign_from_checkpoint
        contrib.framework.assign_from_checkpoint_fn contrib.framework.VariableDeviceChooser
        contrib.framework.get_graph_from_inputs contrib.framework.get_name_scope
        contrib.framework.get_placeholders contrib.framework.prepend_name_scope
        contrib.framework.strip_name_scope contrib.framework.smart_constant_value contrib.framework.smart_cond
        contrib.framework.smart_case contrib.framework.deprecated contrib.framework.deprecated_args
        contrib.framework.deprecated_arg_values
    """,
    "toolkit.tensorflow.families.contrib.nest": """
        contrib.framework.nest.is_sequence contrib.framework.nest.is_sequence_or_composite
        contrib.framework.nest.assert_shallow_structure contrib.framework.nest.flatten_dict_items
        contrib.framework.nest.flatten_up_to contrib.framework.nest.flatten_with_joined_string_paths
        contrib.framework.nest.flatten_with_tuple_paths contrib.framework.nest.flatten_with_tuple_paths_up_to
        contrib.framework.nest.get_traverse_shallow_structure contrib.framework.nest.map_structure_up_to
        contrib.framework.nest.map_structure_with_paths contrib.framework.nest.map_structure_with_tuple_paths
        contrib.framework.nest.map_structure_with_tuple_paths_up_to contrib.framework.nest.yield_flat_paths
    """,
}
