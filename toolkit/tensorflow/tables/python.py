"""Python inside of graphs, and names of the root that stand in no other table."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.ops.script": "py_func numpy_function py_function",
    "toolkit.tensorflow.families.framework.root": """
        QUANTIZED_DTYPES CriticalSection einsum print add_check_numerics_ops assert_variables_initialized recompute_grad
        histogram_fixed_width_bins scatter_nd_update scatter_nd_add scatter_nd_sub switch_case vectorized_map
        is_symbolic_tensor user_ops.my_fact enable_control_flow_v2 enable_tensor_equality enable_v2_tensorshape Module
    """,
    "toolkit.tensorflow.families.framework.graph_util": """
        graph_util.extract_sub_graph graph_util.must_run_on_cpu graph_util.tensor_shape_from_node_def_name
        graph_util.remove_training_nodes graph_util.convert_variables_to_constants
    """,
    "toolkit.tensorflow.families.framework.structures": """
        nest.flatten nest.pack_sequence_as nest.map_structure nest.assert_same_structure
    """,
    "toolkit.tensorflow.families.data.mnist": """
        examples.tutorials.mnist.input_data.read_data_sets examples.tutorials.mnist.input_data.DataSet
        examples.tutorials.mnist.input_data.Datasets examples.tutorials.mnist.input_data.extract_images
        examples.tutorials.mnist.input_data.extract_labels examples.tutorials.mnist.input_data.dense_to_one_hot
    """,
    "toolkit.tensorflow.families.ops.repeated": "repeat",
    "toolkit.tensorflow.families.framework.traced_functions": "function type_spec_from_value",
    "toolkit.client.arrays.sorting": "sort argsort searchsorted",
    "toolkit.client.arrays.spread_ops": "batch_gather batch_scatter_update",
    "toolkit.client.losses.sampled": "nn.nce_loss nn.sampled_softmax_loss",
    "toolkit.client.nn.ctc_dense": "nn.ctc_loss_v2 nn.collapse_repeated nn.ctc_unique_labels",
    "toolkit.tensorflow.families.ops.nn_more": """
        nn.batch_norm_with_global_normalization nn.scale_regularization_loss nn.compute_average_loss
    """,
}
