"""tf.contrib.layers: feature columns and the layers made of them."""

HOMES: dict[str, str] = {
    "toolkit.client.scoped_columns.sparse": """
        contrib.layers.sparse_column_with_integerized_feature contrib.layers.sparse_column_with_hash_bucket
        contrib.layers.sparse_column_with_keys contrib.layers.sparse_column_with_vocabulary_file
        contrib.layers.weighted_sparse_column
    """,
    "toolkit.client.scoped_columns.numeric": "contrib.layers.real_valued_column contrib.layers.bucketized_column",
    "toolkit.client.scoped_columns.embedding": """
        contrib.layers.one_hot_column contrib.layers.embedding_column contrib.layers.shared_embedding_columns
        contrib.layers.crossed_column
    """,
    "toolkit.client.scoped_columns.layers": """
        contrib.layers.input_from_feature_columns contrib.layers.sequence_input_from_feature_columns
        contrib.layers.weighted_sum_from_feature_columns contrib.layers.joint_weighted_sum_from_feature_columns
    """,
    "toolkit.client.scoped_columns.features": """
        contrib.layers.create_feature_spec_for_parsing contrib.layers.parse_feature_columns_from_examples
        contrib.layers.parse_feature_columns_from_sequence_examples contrib.layers.transform_features
        contrib.layers.make_place_holder_tensors_for_base_features contrib.layers.check_feature_columns
        contrib.layers.infer_real_valued_columns
    """,
}
