"""Records, texts and messages taken apart."""

from tests.tf1.calls import separated

_SPARSE = "t = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])\n"

CALLS: dict[str, list[str]] = {
    "io.parse_single_example": separated("""
tf.parse_single_example(s(), {
    'a': tf.FixedLenFeature([2], tf.float32), 'b': tf.VarLenFeature(tf.int64),
    'c': tf.FixedLenSequenceFeature([], tf.string, allow_missing=True)})
---
tf.parse_single_example(s(), {'image/label': tf.FixedLenFeature([], tf.int64, 3), 'z': tf.FixedLenFeature([], tf.string, '')})
"""),
    "io.parse_example": separated("""
tf.parse_example(s(None), {
    'a': tf.FixedLenFeature([], tf.int64, default_value=3), 'b': tf.SparseFeature('i', 'v', tf.float32, 10)}, name='n')
---
tf.parse_example(s(3), {'a': tf.FixedLenFeature([2, 2], tf.float32, [[1.0, 2.0], [3.0, 4.0]])}, example_names=['x', 'y', 'z'])
"""),
    "io.parse_single_sequence_example": separated("""
tf.parse_single_sequence_example(s(), {'a': tf.FixedLenFeature([], tf.int64)}, {
    't': tf.FixedLenSequenceFeature([], tf.int64), 'v': tf.VarLenFeature(tf.string)})
---
tf.parse_single_sequence_example(s(), None, {'t': tf.FixedLenSequenceFeature([2], tf.float32, True)})
"""),
    "io.parse_sequence_example": separated("""
tf.io.parse_sequence_example(s(3), {'a': tf.FixedLenFeature([], tf.int64)}, {'v': tf.VarLenFeature(tf.string)})
---
tf.io.parse_sequence_example(s(3), {'a': tf.VarLenFeature(tf.int64)}, {'t': tf.FixedLenSequenceFeature([], tf.int64)}, name='n')
"""),
    "io.decode_csv": [
        "tf.decode_csv(s(3), [[1.0], ['']], field_delim=';')", "tf.decode_csv(s(), [[1]], select_cols=[2], name='n')",
    ],
    "io.serialize_sparse": [_SPARSE + "tf.serialize_sparse(t)", _SPARSE + "tf.io.serialize_sparse(t, name='n')"],
    "io.serialize_many_sparse": [
        _SPARSE + "tf.serialize_many_sparse(t)", _SPARSE + "tf.io.serialize_many_sparse(t, name='n')",
    ],
    "io.deserialize_many_sparse": [
        "tf.deserialize_many_sparse(s(2, 3), tf.float32)", "tf.io.deserialize_many_sparse(s(2, 3), tf.float32, 2, name='n')",
    ],
}  # fmt: skip
