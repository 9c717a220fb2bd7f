"""Ragged tensors, and texts taken apart."""

from tests.tf1.calls import separated

CALLS: dict[str, list[str]] = {
    "string_split": separated("""
tf.string_split(s(3))
---
tf.string_split(s(3), '-', False, result_type='RaggedTensor', name='n')
---
tf.string_split(['a b'], delimiter=' ')
"""),
    "strings.split": separated("""
tf.strings.split(s(3))
---
tf.strings.split(s(3), '-', 2, 'RaggedTensor', name='n')
---
tf.strings.split(s())
---
tf.strings.split(s(2,3))
"""),
    "strings.bytes_split": separated("""
tf.strings.bytes_split(s(3))
---
tf.strings.bytes_split(s(), name='n')
"""),
    "strings.format": separated("""
tf.strings.format('{} and {}', (f(2), s()))
---
tf.strings.format('% x', f(2), '%', 5, name='n')
"""),
    "strings.ngrams": separated("""
tf.strings.ngrams(s(3), 2)
---
tf.strings.ngrams(s(2, 3), [1, 2], '-', ('a', 'b'), 1, True, name='n')
"""),
    "strings.unicode_decode": separated("""
tf.strings.unicode_decode(s(3), 'UTF-8')
---
tf.strings.unicode_decode(s(), 'UTF-8', 'ignore', 63, True, name='n')
"""),
    "strings.unicode_decode_with_offsets": separated("""
tf.strings.unicode_decode_with_offsets(s(3), 'UTF-8')
---
tf.strings.unicode_decode_with_offsets(s(), 'UTF-8', name='n')
"""),
    "strings.unicode_encode": separated("""
tf.strings.unicode_encode(i(3), 'UTF-8')
---
tf.strings.unicode_encode(i(2, 3), 'UTF-16-BE', name='n')
"""),
    "strings.unicode_split": separated("""
tf.strings.unicode_split(s(3), 'UTF-8')
---
tf.strings.unicode_split(s(), 'UTF-8', name='n')
"""),
    "strings.unicode_split_with_offsets": separated("""
tf.strings.unicode_split_with_offsets(s(3), 'UTF-8')
---
tf.strings.unicode_split_with_offsets(s(), 'UTF-8', name='n')
"""),
    "ragged.constant": separated("""
tf.ragged.constant([[1, 2], [3]])
---
tf.ragged.constant([[[1], [2, 3]], []], tf.float32, name='n')
---
tf.ragged.constant([[[1, 2]], [[3, 4]]], ragged_rank=1)
"""),
    "ragged.placeholder": separated("""
tf.ragged.placeholder(tf.int32, 2)
---
tf.ragged.placeholder(tf.float32, 1, [3], name='n')
---
tf.ragged.placeholder(tf.float32, 0)
"""),
    "ragged.range": separated("""
tf.ragged.range(i(3))
---
tf.ragged.range(i(3), l(3), 2, name='n')
"""),
    "ragged.boolean_mask": separated("""
tf.ragged.boolean_mask(f(3), b(3))
---
tf.ragged.boolean_mask(tf.ragged.constant([[1], [2]]), b(2), name='n')
"""),
    "ragged.map_flat_values": separated("""
tf.ragged.map_flat_values(tf.add, tf.ragged.constant([[1], []]), 3)
---
tf.ragged.map_flat_values(tf.square, f(2))
"""),
    "ragged.stack": separated("""
tf.ragged.stack([f(2), f(3)])
---
tf.ragged.stack([tf.ragged.constant([[1], []]), tf.ragged.constant([[1, 2]])], 0, name='n')
"""),
    "ragged.row_splits_to_segment_ids": separated("""
tf.ragged.row_splits_to_segment_ids(l(3))
---
tf.ragged.row_splits_to_segment_ids([0, 2, 3], name='n')
"""),
    "ragged.segment_ids_to_row_splits": separated("""
tf.ragged.segment_ids_to_row_splits(l(3))
---
tf.ragged.segment_ids_to_row_splits(l(3), 5, name='n')
"""),
    "ragged.stack_dynamic_partitions": separated("""
tf.ragged.stack_dynamic_partitions(f(3), i(3), 4)
---
tf.ragged.stack_dynamic_partitions(s(2, 3), i(2, 3), 4, name='n')
"""),
    "ragged.cross": separated("""
tf.ragged.cross([tf.ragged.constant([['a']]), s(1, 2)])
---
tf.ragged.cross([tf.ragged.constant([['a']])], name='n')
"""),
    "ragged.cross_hashed": separated("""
tf.ragged.cross_hashed([tf.ragged.constant([['a']]), s(1, 2)], 10)
---
tf.ragged.cross_hashed([tf.ragged.constant([['a']]), i(1, 2)], hash_key=7, name='n')
"""),
    "RaggedTensor": separated("""
tf.RaggedTensor.from_row_splits(f(3), l(4))
---
tf.RaggedTensor.from_row_lengths(f(None), [1, 2], name='n')
---
tf.RaggedTensor.from_value_rowids(f(3), l(3))
---
tf.RaggedTensor.from_value_rowids(f(3), [0, 0, 2], 4)
---
tf.RaggedTensor.from_row_starts(f(3), l(2))
---
tf.RaggedTensor.from_row_limits(f(3), l(2))
---
tf.RaggedTensor.from_uniform_row_length(f(6), 2)
---
tf.RaggedTensor.from_tensor(f(2, 3))
---
tf.RaggedTensor.from_tensor(f(2, 3), padding=0.0)
---
tf.RaggedTensor.from_row_splits(f(3), l(4), validate=False).to_tensor()
---
tf.RaggedTensor.from_row_splits(f(3), l(4), validate=False).to_sparse(name='n')
"""),
}

#: calls that make other nodes of the same values, compared in test_ragged
OTHER_NODES = separated("""
tf.strings.split(s(2,3))
---
tf.strings.bytes_split(s(), name='n')
---
tf.strings.ngrams(s(3), 2)
---
tf.strings.ngrams(s(2, 3), [1, 2], '-', ('a', 'b'), 1, True, name='n')
---
tf.strings.unicode_encode(i(3), 'UTF-8')
---
tf.strings.unicode_encode(i(2, 3), 'UTF-16-BE', name='n')
---
tf.strings.unicode_split(s(3), 'UTF-8')
---
tf.strings.unicode_split(s(), 'UTF-8', name='n')
---
tf.strings.unicode_split_with_offsets(s(3), 'UTF-8')
---
tf.strings.unicode_split_with_offsets(s(), 'UTF-8', name='n')
---
tf.ragged.boolean_mask(f(3), b(3))
---
tf.ragged.boolean_mask(tf.ragged.constant([[1], [2]]), b(2), name='n')
---
tf.ragged.stack([f(2), f(3)])
---
tf.ragged.stack([tf.ragged.constant([[1], []]), tf.ragged.constant([[1, 2]])], 0, name='n')
---
tf.ragged.row_splits_to_segment_ids(l(3))
---
tf.ragged.row_splits_to_segment_ids([0, 2, 3], name='n')
---
tf.ragged.segment_ids_to_row_splits(l(3))
---
tf.ragged.segment_ids_to_row_splits(l(3), 5, name='n')
---
tf.ragged.stack_dynamic_partitions(f(3), i(3), 4)
---
tf.ragged.stack_dynamic_partitions(s(2, 3), i(2, 3), 4, name='n')
---
tf.ragged.cross([tf.ragged.constant([['a']])], name='n')
---
tf.ragged.cross_hashed([tf.ragged.constant([['a']]), i(1, 2)], hash_key=7, name='n')
---
tf.RaggedTensor.from_row_lengths(f(None), [1, 2], name='n')
---
tf.RaggedTensor.from_value_rowids(f(3), l(3))
---
tf.RaggedTensor.from_value_rowids(f(3), [0, 0, 2], 4)
---
tf.RaggedTensor.from_row_starts(f(3), l(2))
---
tf.RaggedTensor.from_uniform_row_length(f(6), 2)
---
tf.RaggedTensor.from_tensor(f(2, 3))
---
tf.RaggedTensor.from_tensor(f(2, 3), padding=0.0)
""")
