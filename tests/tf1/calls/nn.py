"""tf.nn and tf.random."""

_LOSS = "labels=f(4, 3), logits=f(4, 3)"

CALLS: dict[str, list[str]] = {
    "nn.softmax": ["tf.nn.softmax(f(2, 3))", "tf.nn.softmax(f(2, 3), name='n')", "tf.nn.softmax(f(2, 3, 4), axis=1)"],
    "nn.log_softmax": ["tf.nn.log_softmax(f(2, 3))", "tf.nn.log_softmax(f(2, 3), name='n')"],
    "nn.relu6": ["tf.nn.relu6(f(2))", "tf.nn.relu6([1.0], name='n')"],
    "nn.leaky_relu": ["tf.nn.leaky_relu(f(2))", "tf.nn.leaky_relu(f(2), 0.1, name='n')"],
    "nn.crelu": ["tf.nn.crelu(f(2))", "tf.nn.crelu(f(2, 2), name='n')"],
    "nn.xw_plus_b": ["tf.nn.xw_plus_b(f(2, 3), f(3, 4), f(4))", "tf.nn.xw_plus_b(f(2, 3), f(3, 4), f(4), name='n')"],
    "nn.relu_layer": ["tf.nn.relu_layer(f(2, 3), f(3, 4), f(4))", "tf.nn.relu_layer(f(2, 3), f(3, 4), f(4), name='n')"],
    "nn.bias_add": ["tf.nn.bias_add(f(2, 3), f(3))", "tf.nn.bias_add(f(2, 3, 4, 4), f(3), 'NCHW', name='n')"],
    "nn.softmax_cross_entropy_with_logits": [
        f"tf.nn.softmax_cross_entropy_with_logits({_LOSS})", f"tf.nn.softmax_cross_entropy_with_logits({_LOSS}, name='n')",
    ],
    "nn.softmax_cross_entropy_with_logits_v2": [
        f"tf.nn.softmax_cross_entropy_with_logits_v2({_LOSS})",
        f"tf.nn.softmax_cross_entropy_with_logits_v2({_LOSS}, name='n')",
    ],
    "nn.sparse_softmax_cross_entropy_with_logits": [
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=i(4), logits=f(4, 3))",
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=l(4), logits=f(4, 3), name='n')",
    ],
    "nn.sigmoid_cross_entropy_with_logits": [
        f"tf.nn.sigmoid_cross_entropy_with_logits({_LOSS})", f"tf.nn.sigmoid_cross_entropy_with_logits({_LOSS}, name='n')",
    ],
    "nn.weighted_cross_entropy_with_logits": [
        f"tf.nn.weighted_cross_entropy_with_logits({_LOSS}, pos_weight=2.0)",
        f"tf.nn.weighted_cross_entropy_with_logits({_LOSS}, pos_weight=0.5, name='n')",
    ],
    "nn.dropout": ["tf.nn.dropout(f(2, 3), 0.5)", "tf.nn.dropout(f(2, 3), f(), name='n')",
                   "tf.nn.dropout(f(2, 3), rate=0.25, seed=3)"],
    "nn.conv2d": ["tf.nn.conv2d(f(1, 8, 8, 3), f(3, 3, 3, 4), [1, 1, 1, 1], 'SAME')",
                  "tf.nn.conv2d(f(1, 8, 8, 3), filters=f(3, 3, 3, 4), strides=2, padding='VALID', name='n')"],
    "nn.conv2d_transpose": [
        "tf.nn.conv2d_transpose(f(1, 4, 4, 4), f(3, 3, 3, 4), [1, 8, 8, 3], [1, 2, 2, 1])",
        "tf.nn.conv2d_transpose(f(1, 4, 4, 4), f(3, 3, 3, 4), i(4), strides=2, name='n')",
    ],
    "nn.max_pool": ["tf.nn.max_pool(f(1, 8, 8, 3), [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
                    "tf.nn.max_pool(f(1, 8, 8, 3), 2, 2, 'VALID', name='n')"],
    "nn.avg_pool": ["tf.nn.avg_pool(f(1, 8, 8, 3), [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
                    "tf.nn.avg_pool(f(1, 8, 8, 3), 2, 2, 'VALID', name='n')"],
    "nn.moments": ["tf.nn.moments(f(4, 3), [0])", "tf.nn.moments(f(4, 3), [0], keep_dims=True, name='n')"],
    "nn.batch_normalization": [
        "tf.nn.batch_normalization(f(4, 3), f(3), f(3), f(3), f(3), 0.001)",
        "tf.nn.batch_normalization(f(4, 3), f(3), f(3), None, None, 0.001, name='n')",
    ],
    "nn.fused_batch_norm": [
        "tf.nn.fused_batch_norm(f(1, 4, 4, 3), f(3), f(3))",
        "tf.nn.fused_batch_norm(f(1, 4, 4, 3), f(3), f(3), f(3), f(3), is_training=False, name='n')",
    ],
    "math.l2_normalize": ["tf.nn.l2_normalize(f(2, 3), 1)", "tf.nn.l2_normalize(f(2, 3), dim=0, name='n')"],
    "nn.embedding_lookup": ["tf.nn.embedding_lookup(f(10, 4), i(3))", "tf.nn.embedding_lookup(f(10, 4), [1, 2], name='n')",
        "tf.nn.embedding_lookup([f(5, 4), f(5, 4)], i(3), 'div')", "tf.nn.embedding_lookup([f(5, 4), f(4, 4)], i(2, 3), name='n')",
        "tf.nn.embedding_lookup(f(10, 4), i(3), max_norm=1.0)"],
    "math.top_k": ["tf.nn.top_k(f(2, 3))", "tf.nn.top_k(f(2, 3), 2, sorted=False, name='n')"],
    "math.in_top_k": ["tf.nn.in_top_k(f(2, 3), i(2), 2)", "tf.nn.in_top_k(f(2, 3), i(2), 1, name='n')"],
    "nn.log_poisson_loss": [
        "tf.nn.log_poisson_loss(f(2), f(2))", "tf.nn.log_poisson_loss(f(2), f(2), name='n')",
        "tf.nn.log_poisson_loss(d(2), d(2), True)",
    ],
    "random.normal": ["tf.random_normal([2, 3])", "tf.random_normal(i(2), 1.0, 2.0, seed=5, name='n')"],
    "random.truncated_normal": ["tf.truncated_normal([2, 3])", "tf.truncated_normal([2], stddev=0.1, seed=5, name='n')"],
    "random.uniform": ["tf.random_uniform([2, 3])", "tf.random_uniform([2], -1.0, 1.0, seed=5, name='n')",
                       "tf.random_uniform([2], maxval=10, dtype=tf.int32)"],
    "random.shuffle": ["tf.random_shuffle(f(4))", "tf.random_shuffle(f(4), seed=1, name='n')"],
    "random.multinomial": ["tf.multinomial(f(2, 3), 4)", "tf.multinomial(f(2, 3), 4, seed=1, name='n')"],
}  # fmt: skip
