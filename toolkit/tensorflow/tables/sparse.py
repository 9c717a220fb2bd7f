"""tf.sparse and tf.sets."""

HOMES: dict[str, str] = {
    "toolkit.client.sparse.tensor": """
        convert_to_tensor_or_sparse_tensor convert_to_tensor_or_indexed_slices
    """,
    "toolkit.client.sparse.sparse_ops": """
        sparse.eye sparse.expand_dims sparse.fill_empty_rows sparse.from_dense sparse.mask sparse.maximum sparse.minimum
        sparse.merge sparse.placeholder sparse.reorder sparse.reset_shape sparse.reshape sparse.retain sparse.slice
        sparse.softmax sparse.sparse_dense_matmul sparse.to_dense sparse.to_indicator sparse.transpose sparse.cross
        sparse.cross_hashed sets.size=set_size sets.intersection=set_intersection sets.union=set_union
        sets.difference=set_difference
    """,
    "toolkit.tensorflow.families.ops.sparse": """
        sparse.add sparse.concat sparse.reduce_max sparse.reduce_sum sparse.reduce_max_sparse sparse.reduce_sum_sparse
        sparse.segment_sum sparse.segment_mean sparse.segment_sqrt_n sparse.split
    """,
}
