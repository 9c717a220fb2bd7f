"""tf.contrib.metrics and tf.contrib.losses."""

_M = "tf.contrib.metrics"
_F = "p = tf.constant([.1, .6, .8, .3, .9, .4])\nl = tf.constant([0., 1., 1., 1., 0., 1.])\nw = tf.constant([1., 2., .5, 0., 1., 1.])\n"
_I = "p = tf.constant([0, 1, 2, 1, 0, 2])\nl = tf.constant([0, 1, 1, 1, 0, 2])\nw = tf.constant([1., 2., .5, 0., 1., 1.])\n"
_K = "p = tf.constant(np.random.RandomState(3).rand(4, 5).astype('f'))\nl = tf.constant([[1, 2], [0, 3], [4, 4], [2, 0]], tf.int64)\nw = tf.constant([1., .5, 0., 2.])\n"
_V = "p = tf.constant(np.random.RandomState(4).rand(4, 3).astype('f'))\nl = tf.constant(np.random.RandomState(5).rand(4, 3).astype('f'))\nw = tf.constant([1., .5, 0., 2.])\n"


def _metric(name: str, data: str, *arguments: str) -> list[str]:
    return [f"{data}value, update = {_M}.{name}({each})\nresult = [update, value]" for each in arguments]


def _loss(name: str, data: str, *arguments: str) -> list[str]:
    return [
        f"{data}loss = tf.contrib.losses.{name}({each})\nresult = [loss, len(tf.get_collection('losses'))]"
        for each in arguments
    ]


VALUES: dict[str, list[str]] = {
    "contrib.metrics.f1_score": _metric("f1_score", _F, "l > .5, p", "l > .5, p, w, 11, name='n'"),
    "contrib.metrics.precision_at_recall": _metric("precision_at_recall", _F, "l > .5, p, .7", "l > .5, p, .4, w, 11, name='n'"),
    "contrib.metrics.recall_at_precision": _metric(
        "recall_at_precision", _F, "l > .5, p, .7", "l > .5, p, .6, w, 11, name='n'", "l > .5, p, .7, strict_mode=True", "l > .5, p, 1.0, w, strict_mode=True"
    ),
    "contrib.metrics.cohen_kappa": _metric("cohen_kappa", _I, "l, p, 3", "l, p, 3, w, name='n'", "l[:, None], p, 4, tf.cast(w, tf.int32)"),
    "contrib.metrics.streaming_curve_points": [
        f"{_F}points, update = {_M}.streaming_curve_points(l > .5, p{more})\n"
        "with tf.control_dependencies([update]):\n    one = tf.constant(1)\nresult = [one, points]"
        for more in (", num_thresholds=9", ", w, 7, curve='PR', name='n'")
    ],
    "contrib.metrics.streaming_sparse_average_precision_at_top_k": _metric(
        "streaming_sparse_average_precision_at_top_k", _K, "tf.nn.top_k(p, 2)[1], l", "tf.nn.top_k(p, 3)[1], l, w, name='n'"
    ),
    **{f"contrib.metrics.streaming_{name}": _metric(f"streaming_{name}", _F, "p > .5, l > .5", "p > .5, l > .5, w, name='n'")
       for name in ("true_positives", "true_negatives", "false_positives", "false_negatives", "precision", "recall", "false_positive_rate", "false_negative_rate")},
    **{f"contrib.metrics.streaming_{name}": _metric(f"streaming_{name}", _F, "p, l", "p, l, weights=w, name='n'")
       for name in ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "covariance", "pearson_correlation", "auc")},
    **{f"contrib.metrics.streaming_{name}_at_thresholds": _metric(f"streaming_{name}_at_thresholds", _F, "p, l > .5, [.2, .5]", "p, l > .5, [.7], weights=w")
       for name in ("true_positives", "true_negatives", "false_positives", "false_negatives", "precision", "recall", "false_positive_rate", "false_negative_rate")},
    "contrib.metrics.streaming_mean": _metric("streaming_mean", _F, "p", "p, w"),
    "contrib.metrics.streaming_mean_tensor": _metric("streaming_mean_tensor", _F, "p", "p, name='n'"),
    "contrib.metrics.streaming_percentage_less": _metric("streaming_percentage_less", _F, "p, .5", "p, .5, w"),
    "contrib.metrics.streaming_accuracy": _metric("streaming_accuracy", _I, "p, l", "p, l, w"),
    "contrib.metrics.streaming_mean_iou": _metric("streaming_mean_iou", _I, "p, l, 3", "p, l, 3, w"),
    "contrib.metrics.streaming_mean_relative_error": _metric("streaming_mean_relative_error", _F, "p, l, p", "p, l, p, w"),
    "contrib.metrics.streaming_mean_cosine_distance": _metric("streaming_mean_cosine_distance", _V, "p, l, 1", "p, l, 1, tf.expand_dims(w, 1)"),
    "contrib.metrics.streaming_specificity_at_sensitivity": _metric("streaming_specificity_at_sensitivity", _F, "p, l > .5, .5", "p, l > .5, .7, num_thresholds=20"),
    "contrib.metrics.streaming_sensitivity_at_specificity": _metric("streaming_sensitivity_at_specificity", _F, "p, l > .5, .5", "p, l > .5, .7, num_thresholds=20"),
    **{f"contrib.metrics.streaming_sparse_{name}": _metric(f"streaming_sparse_{name}", _K, "p, l, 2", "p, l, 3, weights=w")
       for name in ("recall_at_k", "precision_at_k", "average_precision_at_k")},
    "contrib.metrics.streaming_sparse_precision_at_top_k": _metric("streaming_sparse_precision_at_top_k", _K, "tf.nn.top_k(p, 2)[1], l", "tf.nn.top_k(p, 3)[1], l, class_id=2"),
    "contrib.metrics.sparse_recall_at_top_k": _metric("sparse_recall_at_top_k", _K, "l, tf.nn.top_k(p, 2)[1]", "l, tf.nn.top_k(p, 3)[1], 2"),
    "contrib.metrics.streaming_recall_at_k": _metric("streaming_recall_at_k", _K, "p, l[:, 0], 2", "p, l[:, 1], 3, w"),
    "contrib.metrics.count": _metric("count", _F, "p", "p, w, name='n'"),
    "contrib.metrics.accuracy": [f"{_I}result = {_M}.accuracy(p, l{each})" for each in ("", ", w, name='n'")],
    "contrib.metrics.confusion_matrix": [f"{_I}result = {_M}.confusion_matrix(l, p{each})" for each in ("", ", 4, weights=w")],
    "contrib.metrics.aggregate_metrics": [f"{_F}values, updates = {_M}.aggregate_metrics({_M}.streaming_mean(p){each})\nresult = [updates, values]" for each in ("", f", {_M}.count(p)")],
    "contrib.metrics.aggregate_metric_map": [f"{_F}values, updates = {_M}.aggregate_metric_map({{'a': {_M}.streaming_mean(p){each}}})\nresult = [updates, values, str(sorted(values))]" for each in ("", f", 'b': {_M}.count(p)")],
    **{f"contrib.losses.{name}": _loss(name, _V, "p, l", "p, l, w", "p, l, 2., scope='s'")
       for name in ("absolute_difference", "mean_squared_error", "mean_pairwise_squared_error", "log_loss", "sigmoid_cross_entropy")},
    "contrib.losses.softmax_cross_entropy": _loss("softmax_cross_entropy", _V, "p, l", "p, l, w, 0.1", "p, l, tf.expand_dims(w, 1)"),
    "contrib.losses.sparse_softmax_cross_entropy": _loss("sparse_softmax_cross_entropy", _V, "p, [0, 1, 2, 1]", "p, [[0], [1], [2], [1]], w, 's'"),
    "contrib.losses.cosine_distance": _loss("cosine_distance", _V, "p, l, 1", "p, l, dim=1, weights=2."),
    "contrib.losses.hinge_loss": _loss("hinge_loss", _V, "p, tf.round(l)", "p, tf.round(l), 's'"),
    "contrib.losses.compute_weighted_loss": _loss("compute_weighted_loss", _V, "p", "p, w", "p, l"),
    "contrib.losses.add_loss": [f"tf.contrib.losses.add_loss(tf.constant(1.){each})\nresult = [len(tf.get_collection('losses')), len(tf.get_collection('c'))]" for each in ("", ", 'c'")],
    "contrib.losses.get_losses": [f"{_V}tf.contrib.losses.mean_squared_error(p, l, scope='s')\nresult = len(tf.contrib.losses.get_losses({each}))" for each in ("", "'t'")],
    "contrib.losses.get_regularization_losses": [f"tf.contrib.layers.apply_regularization(tf.contrib.layers.l2_regularizer(.1), [f(2)])\nresult = len(tf.contrib.losses.get_regularization_losses({each}))" for each in ("", "'x'")],
    "contrib.losses.get_total_loss": [f"{_V}tf.contrib.losses.mean_squared_error(p, l)\ntf.contrib.losses.log_loss(p, l)\nresult = tf.contrib.losses.get_total_loss({each})" for each in ("", "False, 'n'")],
}  # fmt: skip
