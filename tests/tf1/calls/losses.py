"""tf.losses: every reduction, shapes that are known and shapes that are not."""

_UNKNOWN = "tf.placeholder(tf.float32)"
_TWO = "f(4, 3), f(4, 3)"


def _each(name: str, pair: str = _TWO, weights: str = "f(4, 1)", more: str = "") -> list[str]:
    return [
        f"tf.losses.{name}({pair}{more})",
        f"tf.losses.{name}({pair}{more}, weights=0.5, scope='n', reduction=tf.losses.Reduction.SUM)",
        f"tf.losses.{name}({pair}{more}, weights={weights})",
        f"tf.losses.{name}({pair}{more}, weights={_UNKNOWN}, loss_collection=None)",
    ]


CALLS: dict[str, list[str]] = {
    "losses.absolute_difference": [
        *_each("absolute_difference"),
        "tf.losses.absolute_difference(d(2), [1.0, 2.0], reduction='weighted_sum_over_batch_size')",
        "tf.losses.absolute_difference(f(None, 3), f(None, 3))",
        "with tf.variable_scope('a'):\n  tf.losses.absolute_difference(i(3), f(3))",
    ],
    "losses.add_loss": ["tf.losses.add_loss(f())\ntf.losses.get_total_loss()",
                        "tf.losses.add_loss(f(), None)\ntf.losses.add_loss(f(), 'mine')\ntf.losses.get_losses(None, 'mine')[0] * 2.0"],
    "losses.compute_weighted_loss": [
        "tf.losses.compute_weighted_loss(f(4))",
        f"tf.losses.compute_weighted_loss({_UNKNOWN})",
        f"tf.losses.compute_weighted_loss({_UNKNOWN}, {_UNKNOWN})",
        *(f"tf.losses.compute_weighted_loss(f(4, 2), f(1, 2), reduction='{name}')" for name in (
            "none", "weighted_sum", "weighted_sum_over_batch_size", "weighted_mean", "weighted_sum_by_nonzero_weights",
        )),
        "tf.losses.compute_weighted_loss(d(None, 2), d(None, 2), scope='n')",
    ],
    "losses.cosine_distance": [*_each("cosine_distance", more=", 1"), "tf.losses.cosine_distance(f(4, 3), f(4, 3), dim=0)"],
    "losses.get_losses": ["tf.losses.log_loss(f(2), f(2))\ntf.add_n(tf.losses.get_losses())",
                          "with tf.name_scope('a'):\n  tf.losses.add_loss(f())\ntf.losses.add_loss(f())\ntf.add_n(tf.losses.get_losses('a'))"],
    "losses.get_regularization_loss": [
        "tf.losses.get_regularization_loss()",
        "tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, f())\ntf.losses.get_regularization_loss(name='n')",
    ],
    "losses.get_regularization_losses": [
        "tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, f())\ntf.stack(tf.losses.get_regularization_losses())",
        "tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, f())\nassert not tf.losses.get_regularization_losses('w')",
    ],
    "losses.get_total_loss": [
        "tf.losses.hinge_loss(f(2), f(2))\ntf.losses.get_total_loss()",
        ("tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, f())\ntf.losses.huber_loss(f(2), f(2))\n"
        "tf.losses.get_total_loss()\ntf.losses.get_total_loss(False, name='n')"),
    ],
    "losses.hinge_loss": _each("hinge_loss"),
    "losses.huber_loss": [*_each("huber_loss"), "tf.losses.huber_loss(f(2), f(2), delta=0.5)"],
    "losses.log_loss": [*_each("log_loss"), "tf.losses.log_loss(f(2), f(2), epsilon=0.01)"],
    "losses.mean_pairwise_squared_error": [
        "tf.losses.mean_pairwise_squared_error(f(4, 3), f(4, 3))",
        "tf.losses.mean_pairwise_squared_error(f(4, 3), f(4, 3), f(4, 1), scope='n')",
        "tf.losses.mean_pairwise_squared_error(f(None, 3), f(None, 3), 2.0)",
    ],
    "losses.mean_squared_error": _each("mean_squared_error"),
    "losses.sigmoid_cross_entropy": [
        *_each("sigmoid_cross_entropy"), "tf.losses.sigmoid_cross_entropy(i(4, 3), f(4, 3), label_smoothing=0.1)",
    ],
    "losses.softmax_cross_entropy": [
        *_each("softmax_cross_entropy", weights="f(4)"),
        "tf.losses.softmax_cross_entropy(i(4, 3), f(4, 3), label_smoothing=0.1)",
        "tf.losses.softmax_cross_entropy(f(None, 3), f(None, 3))",
    ],
    "losses.sparse_softmax_cross_entropy": [
        *_each("sparse_softmax_cross_entropy", "i(4), f(4, 3)", weights="f(4)"),
        "tf.losses.sparse_softmax_cross_entropy(i(4, 1), f(4, 3), f(4, 1))",
        "tf.losses.sparse_softmax_cross_entropy(l(None), f(None, 3))",
    ],
}  # fmt: skip
