"""tf.feature_column, and variables that start from a checkpoint."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.layers.feature_columns": """
        feature_column.bucketized_column feature_column.categorical_column_with_hash_bucket
        feature_column.categorical_column_with_identity feature_column.categorical_column_with_vocabulary_file
        feature_column.categorical_column_with_vocabulary_list feature_column.crossed_column
        feature_column.embedding_column feature_column.indicator_column feature_column.input_layer
        feature_column.linear_model feature_column.make_parse_example_spec feature_column.numeric_column
        feature_column.sequence_categorical_column_with_hash_bucket
        feature_column.sequence_categorical_column_with_identity
        feature_column.sequence_categorical_column_with_vocabulary_file
        feature_column.sequence_categorical_column_with_vocabulary_list feature_column.sequence_numeric_column
        feature_column.shared_embedding_columns feature_column.weighted_categorical_column
    """,
    "toolkit.tensorflow.families.train.warm_starting": "train.init_from_checkpoint train.warm_start train.VocabInfo",
}
