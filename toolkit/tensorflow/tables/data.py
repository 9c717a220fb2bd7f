"""tf.data: datasets and iterators."""

HOMES: dict[str, str] = {
    "toolkit.client.data.dataset": "data.Dataset",
    "toolkit.client.data.files": "data.TFRecordDataset data.TextLineDataset data.FixedLengthRecordDataset",
    "toolkit.client.data.iterators": "data.Iterator data.make_initializable_iterator data.make_one_shot_iterator",
    "toolkit.client.data.options": """
        data.Options data.ThreadingOptions data.experimental.ThreadingOptions
        data.experimental.OptimizationOptions data.experimental.DistributeOptions
        data.experimental.MapVectorizationOptions
    """,
    "toolkit.client.data.grouping": "data.experimental.Reducer contrib.data.Reducer",
    "toolkit.tensorflow.families.data.datasets": """
        data.get_output_classes data.get_output_shapes data.get_output_types data.experimental.shuffle_and_repeat
        data.experimental.map_and_batch data.experimental.parallel_interleave data.experimental.group_by_window
        data.experimental.unbatch data.experimental.bucket_by_sequence_length data.experimental.ignore_errors
        data.experimental.enumerate_dataset data.experimental.dense_to_sparse_batch data.experimental.scan
        data.experimental.unique data.experimental.sample_from_datasets data.experimental.choose_from_datasets
        data.experimental.Counter data.experimental.RandomDataset data.experimental.get_single_element
        data.experimental.prefetch_to_device data.experimental.take_while data.experimental.cardinality
        contrib.data.shuffle_and_repeat contrib.data.map_and_batch contrib.data.parallel_interleave
        contrib.data.group_by_window contrib.data.unbatch
        contrib.data.bucket_by_sequence_length=contrib_bucket_by_sequence_length contrib.data.ignore_errors
        contrib.data.enumerate_dataset contrib.data.dense_to_sparse_batch contrib.data.scan contrib.data.unique
        contrib.data.sample_from_datasets contrib.data.choose_from_datasets contrib.data.Counter
        contrib.data.RandomDataset contrib.data.get_single_element contrib.data.batch_and_drop_remainder
        contrib.data.padded_batch_and_drop_remainder contrib.data.prefetch_to_device
        data.experimental.group_by_reducer data.experimental.rejection_resample
        data.experimental.parse_example_dataset data.experimental.copy_to_device
        data.experimental.map_and_batch_with_legacy_function data.experimental.get_structure
        data.experimental.bytes_produced_stats data.experimental.latency_stats data.experimental.to_variant
        data.experimental.from_variant data.experimental.TensorStructure data.experimental.SparseTensorStructure
        data.experimental.TFRecordWriter=DatasetRecordWriter contrib.data.group_by_reducer
        contrib.data.rejection_resample contrib.data.parse_example_dataset contrib.data.copy_to_device
        contrib.data.read_batch_features contrib.data.sliding_window_batch contrib.data.sloppy_interleave
        contrib.data.reduce_dataset contrib.data.assert_element_shape
        contrib.data.TFRecordWriter=DatasetRecordWriter
    """,
    "toolkit.client.data.tables": """
        data.experimental.CsvDataset data.experimental.SqlDataset contrib.data.CsvDataset contrib.data.SqlDataset
    """,
    "toolkit.client.data.optionals": "data.experimental.Optional data.experimental.get_next_as_optional",
    "toolkit.client.data.examples": """
        data.experimental.make_batched_features_dataset contrib.data.make_batched_features_dataset
    """,
    "toolkit.tensorflow.families.data.csv_files": """
        data.experimental.make_csv_dataset contrib.data.make_csv_dataset=contrib_make_csv_dataset
    """,
}
