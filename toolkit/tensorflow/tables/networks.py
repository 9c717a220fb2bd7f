"""tf.losses, tf.metrics and the layers."""

HOMES: dict[str, str] = {
    "toolkit.client.losses.weighted": """
        losses.Reduction losses.absolute_difference losses.add_loss losses.compute_weighted_loss losses.cosine_distance
        losses.get_losses losses.get_regularization_loss losses.get_regularization_losses losses.get_total_loss
        losses.hinge_loss losses.huber_loss losses.log_loss losses.mean_pairwise_squared_error losses.mean_squared_error
        losses.sigmoid_cross_entropy losses.softmax_cross_entropy losses.sparse_softmax_cross_entropy
    """,
    "toolkit.client.metrics": """
        metrics.accuracy metrics.auc metrics.average_precision_at_k metrics.false_negatives
        metrics.false_negatives_at_thresholds metrics.false_positives metrics.false_positives_at_thresholds
        metrics.mean metrics.mean_absolute_error metrics.mean_cosine_distance metrics.mean_iou
        metrics.mean_per_class_accuracy metrics.mean_relative_error metrics.mean_squared_error
        metrics.mean_tensor metrics.percentage_below metrics.precision metrics.precision_at_k
        metrics.precision_at_thresholds metrics.precision_at_top_k metrics.recall metrics.recall_at_k
        metrics.recall_at_thresholds metrics.recall_at_top_k metrics.root_mean_squared_error
        metrics.sensitivity_at_specificity metrics.sparse_average_precision_at_k metrics.sparse_precision_at_k
        metrics.specificity_at_sensitivity metrics.true_negatives metrics.true_negatives_at_thresholds
        metrics.true_positives metrics.true_positives_at_thresholds
    """,
    "toolkit.client.layers": """
        layers.AveragePooling1D layers.AveragePooling2D layers.AveragePooling3D layers.BatchNormalization
        layers.Conv1D layers.Conv2D layers.Conv2DTranspose layers.Conv3D layers.Conv3DTranspose layers.Dense
        layers.Dropout layers.Flatten layers.MaxPooling1D layers.MaxPooling2D layers.MaxPooling3D
        layers.SeparableConv1D layers.SeparableConv2D layers.InputSpec layers.Layer
    """,
    "toolkit.tensorflow.families.layers.functions": """
        layers.average_pooling1d layers.average_pooling2d layers.average_pooling3d layers.batch_normalization
        layers.conv1d layers.conv2d layers.conv2d_transpose layers.conv3d layers.conv3d_transpose layers.dense
        layers.dropout layers.flatten layers.max_pooling1d layers.max_pooling2d layers.max_pooling3d
        layers.separable_conv1d layers.separable_conv2d
    """,
    "toolkit.client.hyperparameters": "contrib.training.HParams contrib.training.parse_values",
    "toolkit.client.mode_keys": "contrib.learn.ModeKeys",
}
