"""tf.contrib.losses.metric_learning."""

_MADE = """
r = np.random.RandomState(%d)
x, y = tf.constant(r.randn(9, 4).astype('f')), tf.constant(r.randn(9, 4).astype('f'))
labels = tf.constant(r.randint(0, %d, 9))
m = tf.contrib.losses.metric_learning
loss = m.%s
result = [loss] + tf.gradients(loss, [%s])
"""
_SEVERAL = """
r = np.random.RandomState(%d)
x, y = tf.constant(r.randn(4, 5).astype('f')), tf.constant(r.randn(4, 5).astype('f'))
labels = [tf.contrib.layers.dense_to_sparse(tf.constant(np.concatenate([[1], r.randint(0, 2, 5)])[None])) for _ in range(4)]
loss = tf.contrib.losses.metric_learning.npairs_loss_multilabel(labels, x, y%s)
result = [loss] + tf.gradients(loss, [x, y])
"""
VALUES: dict[str, list[str]] = {
    "contrib.losses.metric_learning.contrastive_loss": [
        _MADE % (1, 2, "contrastive_loss(labels, x, y)", "x, y"),
        _MADE % (2, 2, "contrastive_loss(labels, x, y, margin=4.0)", "x, y"),
    ],
    "contrib.losses.metric_learning.triplet_semihard_loss": [
        _MADE % (1, 3, "triplet_semihard_loss(labels, x)", "x"),
        _MADE % (2, 2, "triplet_semihard_loss(labels, x, 5.0)", "x"),
        _MADE % (3, 4, "triplet_semihard_loss(labels, tf.concat([x[:5], x[:4]], 0), 0.5)", "x"),
    ],
    "contrib.losses.metric_learning.lifted_struct_loss": [
        _MADE % (1, 3, "lifted_struct_loss(labels, x)", "x"),
        _MADE % (2, 2, "lifted_struct_loss(labels, x, 5.0)", "x"),
    ],
    "contrib.losses.metric_learning.npairs_loss": [
        _MADE % (1, 3, "npairs_loss(labels, x, y)", "x, y"),
        _MADE % (2, 4, "npairs_loss(labels, x, y, reg_lambda=0.5, print_losses=True)", "x, y"),
    ],
    "contrib.losses.metric_learning.npairs_loss_multilabel": [_SEVERAL % (1, ""), _SEVERAL % (2, ", reg_lambda=0.1")],
}
