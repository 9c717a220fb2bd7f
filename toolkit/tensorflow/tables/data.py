"""tf.data: datasets and iterators."""

HOMES: dict[str, str] = {
    "toolkit.client.data.dataset": "data.Dataset",
    "toolkit.client.data.files": "data.TFRecordDataset data.TextLineDataset data.FixedLengthRecordDataset",
    "toolkit.client.data.iterators": "data.Iterator data.make_initializable_iterator data.make_one_shot_iterator",
    "toolkit.client.data.options": "data.Options data.ThreadingOptions",
    "toolkit.tensorflow.families.data": """
        data.get_output_classes data.get_output_shapes data.get_output_types data.experimental.shuffle_and_repeat
        data.experimental.map_and_batch data.experimental.parallel_interleave data.experimental.group_by_window
        data.experimental.unbatch data.experimental.bucket_by_sequence_length data.experimental.ignore_errors
        data.experimental.enumerate_dataset data.experimental.dense_to_sparse_batch data.experimental.scan
        data.experimental.unique data.experimental.sample_from_datasets data.experimental.choose_from_datasets
        data.experimental.Counter data.experimental.RandomDataset data.experimental.get_single_element
        data.experimental.prefetch_to_device data.experimental.take_while data.experimental.cardinality
        contrib.data.shuffle_and_repeat contrib.data.map_and_batch contrib.data.parallel_interleave
        contrib.data.group_by_window contrib.data.unbatch
        contrib.data.bucket_by_sequence_length=contrib_bucket_by_sequence_length
        contrib.data.ignore_errors contrib.data.enumerate_dataset contrib.data.dense_to_sparse_batch
        contrib.data.scan contrib.data.unique contrib.data.sample_from_datasets contrib.data.choose_from_datasets
        contrib.data.Counter contrib.data.RandomDataset contrib.data.get_single_element
        contrib.data.batch_and_drop_remainder contrib.data.padded_batch_and_drop_remainder
        contrib.data.prefetch_to_device
    """,
}
