"""tf.losses, tf.metrics and the layers."""

HOMES: dict[str, str] = {
    "toolkit.client.losses": """
        losses.Reduction losses.absolute_difference losses.add_loss losses.compute_weighted_loss losses.cosine_distance
        losses.get_losses losses.get_regularization_loss losses.get_regularization_losses losses.get_total_loss
        losses.hinge_loss losses.huber_loss losses.log_loss losses.mean_pairwise_squared_error losses.mean_squared_error
        losses.sigmoid_cross_entropy losses.softmax_cross_entropy losses.sparse_softmax_cross_entropy
    """,
}
