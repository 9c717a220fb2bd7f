"""Arrays: shapes, slices, joins, fills. What is one op needs no row."""

HOMES: dict[str, str] = {
    "toolkit.client.arrays.masks": "sequence_mask",
    "toolkit.tensorflow.families.ops.arrays": """
        placeholder placeholder_with_default identity stop_gradient reshape shape size rank zeros ones zeros_like
        ones_like fill expand_dims squeeze concat stack unstack split transpose slice strided_slice pad gather gather_nd
        one_hot where where_v2 boolean_mask reverse_sequence meshgrid unique unique_with_counts
        linalg.matrix_transpose ensure_shape broadcast_dynamic_shape broadcast_static_shape dimension_value
        dimension_at_index guarantee_const edit_distance parallel_stack make_tensor_proto make_ndarray get_static_value
    """,
}
