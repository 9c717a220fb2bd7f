"""tf.contrib.metrics and tf.contrib.losses: predictions before labels."""

HOMES: dict[str, str] = {
    "toolkit.client.metrics.predictions_first": """
        contrib.metrics.accuracy contrib.metrics.aggregate_metric_map contrib.metrics.aggregate_metrics
        contrib.metrics.count contrib.metrics.sparse_recall_at_top_k contrib.metrics.streaming_accuracy
        contrib.metrics.streaming_auc contrib.metrics.streaming_covariance
        contrib.metrics.streaming_false_negative_rate contrib.metrics.streaming_false_negative_rate_at_thresholds
        contrib.metrics.streaming_false_negatives contrib.metrics.streaming_false_negatives_at_thresholds
        contrib.metrics.streaming_false_positive_rate contrib.metrics.streaming_false_positive_rate_at_thresholds
        contrib.metrics.streaming_false_positives contrib.metrics.streaming_false_positives_at_thresholds
        contrib.metrics.streaming_mean contrib.metrics.streaming_mean_absolute_error
        contrib.metrics.streaming_mean_cosine_distance contrib.metrics.streaming_mean_iou
        contrib.metrics.streaming_mean_relative_error contrib.metrics.streaming_mean_squared_error
        contrib.metrics.streaming_mean_tensor contrib.metrics.streaming_pearson_correlation
        contrib.metrics.streaming_percentage_less contrib.metrics.streaming_precision
        contrib.metrics.streaming_precision_at_thresholds contrib.metrics.streaming_recall
        contrib.metrics.streaming_recall_at_k contrib.metrics.streaming_recall_at_thresholds
        contrib.metrics.streaming_root_mean_squared_error contrib.metrics.streaming_sensitivity_at_specificity
        contrib.metrics.streaming_sparse_average_precision_at_k contrib.metrics.streaming_sparse_precision_at_k
        contrib.metrics.streaming_sparse_precision_at_top_k contrib.metrics.streaming_sparse_recall_at_k
        contrib.metrics.streaming_specificity_at_sensitivity contrib.metrics.streaming_true_negatives
        contrib.metrics.streaming_true_negatives_at_thresholds contrib.metrics.streaming_true_positives
        contrib.metrics.streaming_true_positives_at_thresholds
    """,
    "toolkit.client.metrics.agreement": """
        contrib.metrics.cohen_kappa contrib.metrics.f1_score contrib.metrics.precision_at_recall
        contrib.metrics.recall_at_precision contrib.metrics.streaming_curve_points
        contrib.metrics.streaming_sparse_average_precision_at_top_k
    """,
    "toolkit.client.metrics.confusion": "contrib.metrics.confusion_matrix",
    "toolkit.client.losses.predictions_first": """
        contrib.losses.absolute_difference contrib.losses.add_loss contrib.losses.compute_weighted_loss
        contrib.losses.cosine_distance contrib.losses.get_losses contrib.losses.get_regularization_losses
        contrib.losses.get_total_loss contrib.losses.hinge_loss contrib.losses.log_loss
        contrib.losses.mean_pairwise_squared_error contrib.losses.mean_squared_error
        contrib.losses.sigmoid_cross_entropy contrib.losses.softmax_cross_entropy
        contrib.losses.sparse_softmax_cross_entropy
    """,
}
