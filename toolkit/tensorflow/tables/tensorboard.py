"""tf.contrib.tensorboard: what its projector is told."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.projector": """
        contrib.tensorboard.plugins.projector.visualize_embeddings
        contrib.tensorboard.plugins.projector.DESCRIPTOR
    """,
}
