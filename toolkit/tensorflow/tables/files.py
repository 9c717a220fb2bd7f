"""tf.io: records, texts and messages taken apart."""

HOMES: dict[str, str] = {
    "toolkit.client.inputs.parsing": """
        io.FixedLenFeature io.FixedLenSequenceFeature VarLenFeature io.SparseFeature io.parse_example
        io.parse_single_example io.parse_sequence_example io.parse_single_sequence_example
    """,
    "toolkit.tensorflow.families.data.files": """
        io.decode_csv io.serialize_sparse io.serialize_many_sparse io.deserialize_many_sparse
        io.TFRecordCompressionType io.TFRecordOptions io.TFRecordWriter io.tf_record_iterator
    """,
}
