"""tf.ragged, tf.RaggedTensor, specs of all kinds of tensors, and texts taken apart."""

HOMES: dict[str, str] = {
    "toolkit.client.ragged.tensor": "RaggedTensor",
    "toolkit.client.structures.type_specs": """
        TypeSpec TensorSpec SparseTensorSpec RaggedTensorSpec IndexedSlicesSpec TensorArraySpec NoneTensorSpec
        OptionalSpec data.DatasetSpec
    """,
    "toolkit.client.ragged.value": "ragged.RaggedTensorValue",
    "toolkit.client.ragged.factory": """
        ragged.constant ragged.constant_value ragged.placeholder ragged.range=ragged_range ragged.cross
        ragged.cross_hashed
    """,
    "toolkit.client.ragged.elementwise": "ragged.map_flat_values",
    "toolkit.client.ragged.arrays": "ragged.boolean_mask ragged.stack ragged.stack_dynamic_partitions",
    "toolkit.client.ragged.segments": "ragged.row_splits_to_segment_ids ragged.segment_ids_to_row_splits",
    "toolkit.client.ragged.strings": """
        strings.bytes_split strings.unicode_decode strings.unicode_decode_with_offsets strings.unicode_encode
        strings.unicode_split strings.unicode_split_with_offsets strings.ngrams strings.format
    """,
    "toolkit.tensorflow.families.ops.strings": "string_split strings.split",
}
