"""tf.feature_column: columns make nodes where a layer takes them."""

_F = "fc = tf.feature_column\n"
_SPARSE = "words = tf.sparse_placeholder(tf.string, [None, None])\n"
_PLACES = "places = tf.sparse_placeholder(tf.string, [None, None])\n"


def _layers(column: str, features: str, before: str = "", indicator: str = "indicator_column({})") -> list[str]:
    """A categorical column as input of both layers."""
    return [
        f"{_F}{before}c = fc.{column}\nfc.linear_model({features}, [c])",
        f"{_F}{before}c = fc.{column}\nfc.input_layer({features}, [fc.{indicator.format('c')}])",
    ]


def _input(column: str, features: str, before: str = "") -> str:
    return f"{_F}{before}fc.input_layer({features}, [fc.{column}])"


_FILE = (
    "import pathlib, tempfile\npath = str(pathlib.Path(tempfile.gettempdir(), 'graphmill_words.txt'))\n"
    "pathlib.Path(path).write_text('a\\nb\\nc\\n')\n"
)

CALLS: dict[str, list[str]] = {
    "feature_column.numeric_column": [
        _input("numeric_column('x')", "{'x': f(3)}"),
        _input("numeric_column('x', 2, normalizer_fn=lambda t: t / 2)", "{'x': i(None, 2)}"),
        _F + "fc.linear_model({'x': f(None, 2, 2)}, [fc.numeric_column('x', (2, 2), dtype=tf.float64)], units=3)",
    ],
    "feature_column.bucketized_column": _layers("bucketized_column(fc.numeric_column('x', 2), [0.0, 1.5])", "{'x': f(None, 2)}", indicator="bucketized_column(fc.numeric_column('x', 2), [1.0])"),
    "feature_column.categorical_column_with_hash_bucket": [
        *_layers("categorical_column_with_hash_bucket('w', 5)", "{'w': words}", _SPARSE),
        *_layers("categorical_column_with_hash_bucket('w', 5, tf.int32)", "{'w': i(3)}"),
    ],
    "feature_column.categorical_column_with_identity": [
        *_layers("categorical_column_with_identity('i', 4)", "{'i': l(3, 2)}"),
        *_layers("categorical_column_with_identity('i', 4, 1)", "{'i': i(None)}"),
    ],
    "feature_column.categorical_column_with_vocabulary_list": [
        *_layers("categorical_column_with_vocabulary_list('w', ['a', 'b'])", "{'w': s(3)}"),
        *_layers("categorical_column_with_vocabulary_list('w', ['a', 'b'], num_oov_buckets=2)", "{'w': words}", _SPARSE),
        *_layers("categorical_column_with_vocabulary_list('w', [7, 9], tf.int64, default_value=1)", "{'w': i(3)}"),
    ],
    "feature_column.categorical_column_with_vocabulary_file": [
        *_layers("categorical_column_with_vocabulary_file('w', path)", "{'w': s(3)}", _FILE),
        *_layers("categorical_column_with_vocabulary_file('w', path, 2, num_oov_buckets=1)", "{'w': words}", _FILE + _SPARSE),
    ],
    "feature_column.crossed_column": [
        *_layers("crossed_column(['w', 'v'], 7)", "{'w': words, 'v': s(3)}", _SPARSE),
        *_layers("crossed_column([fc.bucketized_column(fc.numeric_column('x'), [1.0]), 'v'], 7, hash_key=3)", "{'x': f(3), 'v': s(3)}"),
    ],
    "feature_column.weighted_categorical_column": [
        *_layers("weighted_categorical_column(fc.categorical_column_with_hash_bucket('w', 5), 'n')", "{'w': s(3, 2), 'n': f(3, 2)}"),
        *_layers("weighted_categorical_column(fc.categorical_column_with_identity('w', 5), 'n', tf.int32)", "{'w': l(3, 2), 'n': i(3, 2)}", indicator="embedding_column({}, 2, 'sqrtn')"),
    ],
    "feature_column.indicator_column": [
        _input("indicator_column(fc.categorical_column_with_identity('i', 4))", "{'i': l(3)}"),
        _input("indicator_column(fc.categorical_column_with_vocabulary_list('w', ['a', 'b']))", "{'w': places}", _PLACES),
    ],
    "feature_column.embedding_column": [
        _input("embedding_column(fc.categorical_column_with_identity('i', 4), 3)", "{'i': l(3)}"),
        _input("embedding_column(fc.categorical_column_with_identity('i', 4), 3, 'sum', tf.ones_initializer(), max_norm=1.0, trainable=False)", "{'i': l(3, 2)}"),
        _input("embedding_column(fc.categorical_column_with_identity('i', 4), 3, use_safe_embedding_lookup=False)", "{'i': l(3)}"),
        _F + "with tf.variable_scope('deep', partitioner=tf.fixed_size_partitioner(2)):\n"
        "  fc.input_layer({'i': l(3)}, [fc.embedding_column(fc.categorical_column_with_identity('i', 4), 3)])",
    ],
    "feature_column.shared_embedding_columns": [
        _F + "a, b = (fc.categorical_column_with_identity(key, 4) for key in 'ab')\n"
        "fc.input_layer({'a': l(3), 'b': l(3)}, fc.shared_embedding_columns([b, a], 2))",
        _F + "a, b = (fc.categorical_column_with_hash_bucket(key, 4) for key in 'ab')\n"
        "fc.input_layer({'a': s(3), 'b': s(3)}, fc.shared_embedding_columns([a, b], 2, 'sum', shared_embedding_collection_name='both'))",
    ],
    "feature_column.input_layer": [
        _F + "found = {}\n"
        "c = [fc.numeric_column('b'), fc.numeric_column('a', 2), fc.embedding_column(fc.categorical_column_with_identity('i', 4), 3)]\n"
        "fc.input_layer({'a': f(3, 2), 'b': f(3), 'i': l(3)}, c, ['mine'], False, found)\n"
        "assert [v.op.name for v in found[c[2]]] == ['input_layer/i_embedding/embedding_weights']\n"
        "assert tf.get_collection('mine') == found[c[2]] and not tf.trainable_variables()",
        _F + "with tf.variable_scope('s'):\n  fc.input_layer({'a': f(3)}, [fc.numeric_column('a')])\n"
        "fc.input_layer({'a': f(3)}, fc.numeric_column('a'))\nfc.input_layer({'a': f(3)}, [fc.numeric_column('a')])",
        _input("numeric_column('x')", "{'x': tf.placeholder(tf.float32)}"),
        _input("numeric_column('x')", "{'x': [1.0, 2.0]}"),
    ],
    "feature_column.linear_model": [
        _F + "found = {}\nc = [fc.numeric_column('b'), fc.categorical_column_with_identity('i', 4)]\n"
        "fc.linear_model({'b': f(3), 'i': l(3, 2)}, c, 2, 'mean', cols_to_vars=found)\n"
        "assert [v.op.name for v in found['bias'] + found[c[1]]] == ['linear_model/bias_weights', 'linear_model/i/weights']",
        _F + "with tf.variable_scope('s'):\n  fc.linear_model({'a': f(3)}, [fc.numeric_column('a')], weight_collections=['mine'])\n"
        "fc.linear_model({'a': f(3)}, [fc.numeric_column('a')], trainable=False)\n"
        "fc.linear_model({'a': f(3)}, [fc.numeric_column('a')])\nassert len(tf.get_collection('mine')) == 2",
    ],
    "nn.safe_embedding_lookup_sparse": [
        _SPARSE + "ids = tf.SparseTensor(words.indices, l(None), words.dense_shape)\n"
        "tf.nn.safe_embedding_lookup_sparse([f(4, 2), f(4, 2)], ids, None, 'sqrtn', default_id=2, name='n')",
        _SPARSE + "ids = tf.SparseTensor(words.indices, l(None), words.dense_shape)\n"
        "tf.nn.safe_embedding_lookup_sparse(tf.get_variable('v', [4, 2]), ids, tf.SparseTensor(words.indices, f(None), words.dense_shape))",
        "tf.nn.safe_embedding_lookup_sparse(tf.get_variable('v', [4, 2]), tf.sparse_placeholder(tf.int64), max_norm=1.0)",
    ],
}  # fmt: skip
