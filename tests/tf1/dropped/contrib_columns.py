"""Feature columns of tf.contrib.layers: what is embedded has the nodes of later releases, and 1.15's values."""

_COLUMNS = """
cl = tf.contrib.layers
words, number, two = cl.sparse_column_with_hash_bucket('w', 7), cl.real_valued_column('a'), cl.real_valued_column('b', 2)
keys = cl.sparse_column_with_keys('k', ['u', 'v', 'z'])
identity = cl.sparse_column_with_integerized_feature('n', 5)
bucket = cl.bucketized_column(number, [0.0, 0.5, 0.5, 1.0])
"""
_PLACEHOLDERS = (
    _COLUMNS + "features = {'w': s(4, 1), 'a': f(4, 1), 'b': f(4, 2), 'k': s(4, 3), 'n': l(4, 2), 'x': f(4, 2)}\n"
)
_CONSTANTS = (
    _COLUMNS
    + """
r = np.random.RandomState(5)
texts = lambda *rows: tf.constant([[each for each in row] for row in rows])
features = {'w': texts('p', 'q', 'p', 'r'), 'a': tf.constant(r.rand(4, 1).astype('f')), 'b': tf.constant(r.randn(4, 2).astype('f')),
            'k': tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0]], ['u', 'z', 'v', 'nn'], [4, 3]),
            'n': tf.constant([[1, 7], [-1, 3], [2, -1], [4, 4]], tf.int64), 'x': tf.constant(r.rand(4, 2).astype('f') + 0.5),
            's': tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 0]], [0.5, 2.0, 1.5, 1.0], [4, 3])}
deep = lambda *columns, **given: cl.input_from_feature_columns(features, columns, **given)
wide = lambda *columns, **given: cl.weighted_sum_from_feature_columns(features, columns, 2, **given)[0]
"""
)


def _nodes(*ends: str) -> list[str]:
    return [_PLACEHOLDERS + end for end in ends]


def _values(*ends: str) -> list[str]:
    return [f"{_CONSTANTS}result = {end}" for end in ends]


_EXAMPLES = (
    _CONSTANTS
    + """
feature = lambda **kind: tf.train.Feature(**kind)
one = lambda w, a: tf.train.Example(features=tf.train.Features(feature={
    'a': feature(float_list=tf.train.FloatList(value=[a])), 'n': feature(int64_list=tf.train.Int64List(value=[3, 9])),
    'w': feature(bytes_list=tf.train.BytesList(value=w))})).SerializeToString()
serialized = [one([b'p'], 0.7), one([b'q', b'r'], -1.0)]
dense = lambda found: [tf.sparse_tensor_to_dense(v) if isinstance(v, tf.SparseTensor) else v for _, v in sorted(found.items(), key=lambda i: str(i[0]))]
"""
)
_STEPS = (
    _CONSTANTS
    + """
steps = [tf.train.Feature(float_list=tf.train.FloatList(value=[v, 1.0])) for v in (0.5, 2.0)]
example = tf.train.SequenceExample(
    context=tf.train.Features(feature={'b': tf.train.Feature(float_list=tf.train.FloatList(value=[3.0, 4.0]))}),
    feature_lists=tf.train.FeatureLists(feature_list={'x': tf.train.FeatureList(feature=steps)})).SerializeToString()
"""
)

CALLS: dict[str, list[str]] = {
    "contrib.layers.real_valued_column": _nodes(
        "cl.input_from_feature_columns(features, [number, two])",
        "cl.weighted_sum_from_feature_columns(features, [cl.real_valued_column('b', 2, normalizer=lambda x: x * 2.0), cl.real_valued_column('n', 2, dtype=tf.int64)], 1)",
    ),
    "contrib.layers.check_feature_columns": _nodes(
        "cl.check_feature_columns([number, words])", "cl.check_feature_columns([identity])"
    ),
    "contrib.layers.make_place_holder_tensors_for_base_features": _nodes(
        "cl.make_place_holder_tensors_for_base_features([number])",
        "cl.make_place_holder_tensors_for_base_features([identity])",
    ),
    "contrib.layers.transform_features": _nodes(
        "cl.transform_features(features, [number, words])", "cl.transform_features(features, [cl.one_hot_column(keys)])"
    ),
    "contrib.layers.sequence_input_from_feature_columns": _nodes(
        "cl.sequence_input_from_feature_columns({'a': f(2, 3)}, [number])",
        "cl.sequence_input_from_feature_columns({'a': f(2, 3, 1), 'b': f(2, 3, 2)}, [number, two], scope='steps')",
    ),
}

VALUES: dict[str, list[str]] = {
    "contrib.layers.bucketized_column": _values(
        "[deep(bucket), wide(bucket)]",
        "[deep(cl.bucketized_column(two, (-1.0, 0.5))), wide(cl.bucketized_column(two, (-1.0, 0.5)))]",
    ),
    "contrib.layers.sparse_column_with_hash_bucket": _values(
        "[deep(cl.embedding_column(words, 3)), wide(words)]",
        "deep(cl.one_hot_column(cl.sparse_column_with_hash_bucket('w', 7, hash_keys=[[1, 2], [3, 4]])))",
        "deep(cl.one_hot_column(cl.sparse_column_with_hash_bucket('n', 7, dtype=tf.int64)))",
    ),
    "contrib.layers.sparse_column_with_keys": _values(
        "[deep(cl.one_hot_column(keys)), wide(keys)]",
        "wide(cl.sparse_column_with_keys('n', [3, 4], default_value=1, dtype=tf.int64))",
    ),
    "contrib.layers.sparse_column_with_integerized_feature": _values(
        "[deep(cl.one_hot_column(identity)), wide(identity)]", "deep(cl.embedding_column(identity, 2, combiner='sum'))"
    ),
    "contrib.layers.sparse_column_with_vocabulary_file": [
        _CONSTANTS
        + """
import tempfile
path = tempfile.NamedTemporaryFile('w', suffix='.txt', delete=False)
path.write({!r})
path.close()
result = {}
""".format(*pair)
        for pair in (
            ("q\np\nz\n", "wide(cl.sparse_column_with_vocabulary_file('w', path.name, vocab_size=3))"),
            (
                "3\n4\n",
                "deep(cl.one_hot_column(cl.sparse_column_with_vocabulary_file('n', path.name, 2, 2, dtype=tf.int64)))",
            ),
        )
    ],
    "contrib.layers.weighted_sparse_column": _values(
        "[deep(cl.embedding_column(cl.weighted_sparse_column(keys, 's'), 2)), wide(cl.weighted_sparse_column(keys, 's'))]",
        "deep(cl.one_hot_column(cl.weighted_sparse_column(cl.sparse_column_with_keys('k', ['u', 'v', 'z'], 0), 's')))",
    ),
    "contrib.layers.one_hot_column": _values(
        "deep(cl.one_hot_column(words), number)", "deep(cl.one_hot_column(keys), bucket)"
    ),
    "contrib.layers.embedding_column": _values(
        "deep(cl.embedding_column(words, 3, 'sqrtn', max_norm=0.5), number)",
        "[deep(cl.embedding_column(keys, 2, initializer=tf.zeros_initializer(), trainable=False)), tf.trainable_variables()]",
    ),
    "contrib.layers.shared_embedding_columns": _values(
        "deep(*cl.shared_embedding_columns([words, cl.sparse_column_with_hash_bucket('k', 7)], 2), scope='in')",
        "deep(number, *cl.shared_embedding_columns([words], 2, shared_embedding_name='mine'))",
    ),
    "contrib.layers.crossed_column": _values(
        "wide(cl.crossed_column([keys, words], 10, hash_key=5))",
        "wide(cl.crossed_column([keys, words], 10), cl.crossed_column([words, identity], 100))",
        "wide(cl.crossed_column([cl.crossed_column([bucket, words], 10), keys], 50), bucket)",
        "deep(cl.embedding_column(cl.crossed_column([bucket, words], 10, hash_key=5), 2))",
    ),
    "contrib.layers.input_from_feature_columns": _values(
        "[deep(number, two, cl.embedding_column(words, 2), weight_collections=['mine'], scope='in'), [v.name for v in tf.get_collection('mine')]]",
        "cl.input_from_feature_columns({'': tf.ones([3, 2])}, cl.infer_real_valued_columns(tf.ones([3, 2])), trainable=False)",
    ),
    "contrib.layers.weighted_sum_from_feature_columns": _values(
        "wide(words, number, two, keys, bucket)",
        "[wide(cl.weighted_sparse_column(keys, 's'), number, scope='wide', weight_collections=['mine']), [v.name for v in tf.get_collection('mine')]]",
        "cl.weighted_sum_from_feature_columns({'': tf.ones([3, 2])}, [cl.real_valued_column('', 2)], 1)[0]",
    ),
    "contrib.layers.joint_weighted_sum_from_feature_columns": _values(
        "cl.joint_weighted_sum_from_feature_columns(features, [words, keys], 2)[0]",
        "cl.joint_weighted_sum_from_feature_columns(features, [identity], 1, scope='wide')[0]",
    ),
    "contrib.layers.create_feature_spec_for_parsing": [
        _EXAMPLES + end
        for end in (
            "result = dense(tf.parse_example(serialized, cl.create_feature_spec_for_parsing([words, number, identity])))",
            "result = dense(tf.parse_example(serialized, cl.create_feature_spec_for_parsing({'one': cl.real_valued_column('x', 2, 3)})))",
        )
    ],
    "contrib.layers.parse_feature_columns_from_examples": [
        _EXAMPLES + end
        for end in (
            "result = dense(cl.parse_feature_columns_from_examples(serialized, [bucket]))",
            "result = dense({k: v for k, v in cl.parse_feature_columns_from_examples(serialized, [words, identity], name='mine').items() if k in (words, identity)})",
        )
    ],
    "contrib.layers.parse_feature_columns_from_sequence_examples": [
        _STEPS + end
        for end in (
            "result = list(cl.parse_feature_columns_from_sequence_examples(example, [two], [cl.real_valued_column('x', 2, 0.0)]))",
            "result = list(cl.parse_feature_columns_from_sequence_examples([example], None, [cl.real_valued_column('x', 2)], name='mine'))",
        )
    ],
    "contrib.layers.infer_real_valued_columns": _values(
        "deep(*cl.infer_real_valued_columns({'a': features['a'], 'b': features['b']}))",
        "cl.input_from_feature_columns({'': tf.ones([3, 2, 2], tf.float64)}, cl.infer_real_valued_columns(tf.ones([3, 2, 2], tf.float64)))",
    ),
}  # fmt: skip
