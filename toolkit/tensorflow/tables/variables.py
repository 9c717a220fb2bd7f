"""Variables, their scopes, initializers."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.framework.variables": """
        Variable VariableSynchronization VariableAggregation AUTO_REUSE enable_resource_variables
        disable_resource_variables resource_variables_enabled get_variable get_local_variable get_variable_scope
        variable_scope global_variables all_variables local_variables trainable_variables model_variables
        moving_average_variables initializers.global_variables=global_variables_initializer initialize_all_variables
        initializers.local_variables=local_variables_initializer initialize_local_variables
        initializers.variables=variables_initializer initialize_variables
        initializers.tables_initializer initialize_all_tables report_uninitialized_variables is_variable_initialized
        assign assign_add assign_sub count_up_to scatter_add scatter_sub scatter_mul scatter_div scatter_max scatter_min
        scatter_update variable_axis_size_partitioner
    """,
    "toolkit.client.variables.store": "VariableScope",
    "toolkit.client.variables.partition": """
        fixed_size_partitioner min_max_variable_partitioner
    """,
    "toolkit.tensorflow.families.layers.initializers": """
        zeros_initializer ones_initializer initializers.constant=constant_initializer random_uniform_initializer
        random_normal_initializer truncated_normal_initializer variance_scaling_initializer glorot_uniform_initializer
        glorot_normal_initializer orthogonal_initializer initializers.he_normal initializers.he_uniform
        initializers.lecun_normal initializers.lecun_uniform
        uniform_unit_scaling_initializer no_regularizer
    """,
}
