"""tf.contrib.lookup."""

_WORDS = """
import os, tempfile
path = os.path.join(tempfile.mkdtemp(), 'words.txt')
with open(path, 'w') as file:
    file.write('a\\nb\\nc\\n')
words = tf.constant(['b', 'zz', 'a', 'q'])
numbers = tf.constant([2, 0, 9], tf.int64)
lookup = tf.contrib.lookup
def filled(*tensors):
    with tf.control_dependencies([tf.tables_initializer()]):
        return [tf.identity(t) for t in tensors]
"""


def _lines(*ends: str) -> list[str]:
    return [_WORDS + end for end in ends]


VALUES: dict[str, list[str]] = {
    "contrib.lookup.index_table_from_file": _lines(
        "t = lookup.index_table_from_file(path, num_oov_buckets=2)\nresult = [t.lookup(words), t.size()]",
        "t = lookup.index_table_from_file(path, vocab_size=2, default_value=7)\nresult = [t.lookup(words), t.size()]",
        "t = lookup.index_table_from_file(path, 5, hasher_spec=lookup.StrongHashSpec([1, 2]))\nresult = t.lookup(words)",
    ),
    "contrib.lookup.index_table_from_tensor": _lines(
        "t = lookup.index_table_from_tensor(tf.constant(['a', 'b']), 3)\nresult = [t.lookup(words), t.size()]",
        "t = lookup.index_table_from_tensor([5, 9, 2], dtype=tf.int64, default_value=-4)\nresult = t.lookup(numbers)",
        """
t = lookup.index_table_from_tensor(tf.constant(['a', 'b']), 3)
sparse = t.lookup(tf.SparseTensor([[0, 0], [1, 1]], ['b', 'x'], [2, 2]))
result = [sparse.indices, sparse.values]
""",
    ),
    "contrib.lookup.index_to_string_table_from_file": _lines(
        "result = lookup.index_to_string_table_from_file(path).lookup(numbers)",
        "result = lookup.index_to_string_table_from_file(path, default_value='none').lookup(numbers)",
    ),
    "contrib.lookup.index_to_string_table_from_tensor": _lines(
        "result = lookup.index_to_string_table_from_tensor(tf.constant(['x', 'y', 'z'])).lookup(numbers)",
        "result = lookup.index_to_string_table_from_tensor(['x'], default_value='none', name='n').lookup(numbers)",
    ),
    "contrib.lookup.string_to_index": _lines(
        "result = lookup.string_to_index(words, tf.constant(['a', 'b']))",
        "result = lookup.string_to_index(words, tf.constant(['q']), default_value=5, name='n')",
    ),
    "contrib.lookup.index_to_string": _lines(
        "result = lookup.index_to_string(numbers, tf.constant(['a', 'b']))",
        "result = lookup.index_to_string(numbers, tf.constant(['q']), default_value='d', name='n')",
    ),
    "contrib.lookup.string_to_index_table_from_file": _lines(
        "result = lookup.string_to_index_table_from_file(path, 4).lookup(words)",
        "result = lookup.string_to_index_table_from_file(path, default_value=3).lookup(words)",
    ),
    "contrib.lookup.string_to_index_table_from_tensor": _lines(
        "result = lookup.string_to_index_table_from_tensor(tf.constant(['a']), 4).lookup(words)",
        "result = lookup.string_to_index_table_from_tensor(tf.constant(['b', 'a']), default_value=3).lookup(words)",
    ),
    "contrib.lookup.HashTable": _lines(
        """
keys, values = tf.constant(['a', 'b']), tf.constant([1.5, 2.5])
t = lookup.HashTable(lookup.KeyValueTensorInitializer(keys, values), -1.0, shared_name='s')
result = [t.lookup(words), t.size()]
""",
    ),
    "contrib.lookup.MutableHashTable": _lines(
        """
t = lookup.MutableHashTable(tf.string, tf.float32, [0.0, -1.0], checkpoint=False)
with tf.control_dependencies([t.insert(tf.constant(['a', 'b']), tf.constant([[1.0, 2.0], [3.0, 4.0]]))]):
    result = [tf.identity(t.lookup(words)), t.size()]
""",
    ),
    "contrib.lookup.MutableDenseHashTable": _lines(
        """
t = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, 0, -2)
with tf.control_dependencies([t.insert(tf.constant([5, 2], tf.int64), tf.constant([50, 20], tf.int64))]):
    result = tf.identity(t.lookup(numbers + 0 * numbers + 2))
""",
    ),
    "contrib.lookup.IdTableWithHashBuckets": _lines(
        "t = lookup.IdTableWithHashBuckets(None, 6)\nresult = [t.lookup(words), t.size()]",
    ),
}
