"""What of tf.keras needs no Keras."""

_INITIALIZERS = {
    "RandomNormal": "random_normal normal", "RandomUniform": "random_uniform uniform",
    "TruncatedNormal": "truncated_normal",
}  # fmt: skip

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.layers.keras_helpers": " ".join(
        f"keras.initializers.{name} " + " ".join(f"keras.initializers.{other}={name}" for other in others.split())
        for name, others in _INITIALIZERS.items()
    )
    + """
        keras.regularizers.Regularizer keras.regularizers.L1L2 keras.regularizers.l1 keras.regularizers.l2
        keras.regularizers.l1_l2 keras.utils.to_categorical
    """,
    "toolkit.tensorflow.families.layers.initializers": "keras.initializers.Initializer",
}
