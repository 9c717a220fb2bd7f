"""tf.lookup: tables from keys to values. What has no name in common is in tests/tf1/dropped/lookup.py."""

from tests.tf1.calls import separated

CALLS: dict[str, list[str]] = {
    "lookup.TextFileInitializer": separated("""
init = tf.lookup.TextFileInitializer('words.txt', tf.string, 0, tf.int64, -1)
t = tf.lookup.StaticHashTable(init, -1)
t.lookup(s(2))
t.size()
---
init = tf.lookup.TextFileInitializer('words.txt', tf.int64, 1, tf.string, 0, 10, ',', 'n')
t = tf.lookup.StaticHashTable(init, 'none', name='t')
t.lookup(tf.SparseTensor(l(None, 2), l(None), l(2)), name='found')
tf.tables_initializer()
"""),
    "lookup.StaticVocabularyTable": separated("""
init = tf.lookup.TextFileInitializer('words.txt', tf.string, 0, tf.int64, -1)
t = tf.lookup.StaticVocabularyTable(init, 3)
t.lookup(s(2))
t.size()
---
t = tf.lookup.StaticVocabularyTable(None, 3, name='n')
t.lookup(s(None))
"""),
    "lookup.experimental.DenseHashTable": separated("""
t = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2)
t.insert(l(2), l(2))
t.lookup(l(3))
t.size()
t.erase(l(1))
---
t = tf.lookup.experimental.DenseHashTable(tf.string, tf.float32, [0.0, 1.0], '', '?', 8, 'n', False)
t.export()
"""),
    "initializers.tables_initializer": ["tf.tables_initializer()", "tf.tables_initializer(name='n')"],
}
