"""tf.metrics: with and without weights, names and collections."""


def _each(name: str, pair: str = "f(4), f(4)", weights: str = "f(4)", more: str = "") -> list[str]:
    return [
        f"tf.metrics.{name}({pair}{more})",
        f"tf.metrics.{name}({pair}{more}, weights={weights}, name='n')",
        (f"tf.metrics.{name}({pair}{more}, metrics_collections=['m'], updates_collections='u')\n"
        "tf.add_n(tf.get_collection('m') + tf.get_collection('u'))"),
    ]  # fmt: skip


_BOOL = "b(4), b(4)"
_AT = "b(4), f(4)"
_TOP = "l(4, 1), f(4, 5)"

CALLS: dict[str, list[str]] = {
    "metrics.accuracy": [*_each("accuracy"), "tf.metrics.accuracy(l(4, 1), i(4))", "tf.metrics.accuracy(f(None), f(None), f(None, 1))"],
    "metrics.auc": [
        *_each("auc", _AT, more=", num_thresholds=5"), "tf.metrics.auc(l(4), f(4), curve='PR', num_thresholds=5)",
        "tf.metrics.auc(b(4), f(4), curve='PR', summation_method='careful_interpolation', num_thresholds=4)",
        "tf.metrics.auc(b(4), f(4), thresholds=[0.7, 0.5], summation_method='minoring')",
        "tf.metrics.auc(b(None), f(None), thresholds=[0.5], summation_method='majoring')",
    ],
    "metrics.average_precision_at_k": _each("average_precision_at_k", _TOP, more=", k=2"),
    **{f"metrics.{name}": _each(name, _BOOL) for name in ("false_negatives", "false_positives", "true_negatives", "true_positives")},
    **{f"metrics.{name}_at_thresholds": _each(f"{name}_at_thresholds", _AT, more=", thresholds=[0.2, 0.6]") for name in (
        "false_negatives", "false_positives", "true_negatives", "true_positives", "precision", "recall",
    )},
    "metrics.mean": [*_each("mean", "f(4, 3)", "f(4, 1)"), "tf.metrics.mean([1.0, 2.0])", "tf.metrics.mean(f(None, 3), f(None))",
                     "tf.metrics.mean(i(4), 2.0)\ntf.metrics.mean(i(4))\ntf.local_variables_initializer()"],
    "metrics.mean_absolute_error": _each("mean_absolute_error"),
    "metrics.mean_cosine_distance": _each("mean_cosine_distance", "f(4, 3), f(4, 3)", "f(4, 1)", ", dim=1"),
    "metrics.mean_iou": [*_each("mean_iou", "i(4), i(4)", more=", num_classes=3")[:2], "tf.metrics.mean_iou(l(2, 2), l(2, 2), 3)"],
    "metrics.mean_per_class_accuracy": _each("mean_per_class_accuracy", "i(4), i(4)", more=", num_classes=3")[:2],
    "metrics.mean_relative_error": _each("mean_relative_error", more=", normalizer=f(4)"),
    "metrics.mean_squared_error": _each("mean_squared_error"),
    "metrics.mean_tensor": _each("mean_tensor", "f(4, 3)", "f(4, 1)"),
    "metrics.percentage_below": _each("percentage_below", "f(4)", more=", threshold=0.5"),
    "metrics.precision": [*_each("precision", _BOOL), "tf.metrics.precision(f(4), l(4))"],
    "metrics.precision_at_k": [*_each("precision_at_k", _TOP, more=", k=2"), "tf.metrics.precision_at_k(l(4, 1), f(4, 5), 2, class_id=3)",
                               "tf.metrics.precision_at_k(l(4), f(4, 5), 1)"],
    "metrics.precision_at_top_k": _each("precision_at_top_k", "l(4, 1), l(4, 2)"),
    "metrics.recall": _each("recall", _BOOL),
    "metrics.recall_at_k": [*_each("recall_at_k", _TOP, more=", k=2"), "tf.metrics.recall_at_k(l(4, 1), f(4, 5), 2, class_id=3, weights=f(4))"],
    "metrics.recall_at_top_k": _each("recall_at_top_k", "l(4, 1), l(4, 2)"),
    "metrics.root_mean_squared_error": _each("root_mean_squared_error"),
    "metrics.sensitivity_at_specificity": _each("sensitivity_at_specificity", _AT, more=", specificity=0.5, num_thresholds=5"),
    "metrics.sparse_average_precision_at_k": _each("sparse_average_precision_at_k", _TOP, more=", k=2"),
    "metrics.sparse_precision_at_k": _each("sparse_precision_at_k", _TOP, more=", k=2"),
    "metrics.specificity_at_sensitivity": _each("specificity_at_sensitivity", _AT, more=", sensitivity=0.5, num_thresholds=5"),
}  # fmt: skip
