"""What of tf.keras needs no Keras: initializers and regularizers."""

_NEW = "tf.get_variable('w', [3, 4], initializer=tf.keras.initializers."

CALLS: dict[str, list[str]] = {
    "keras.initializers.RandomNormal": [f"{_NEW}RandomNormal())", f"{_NEW}random_normal(0.5, 0.25, seed=3))"],
    "keras.initializers.RandomUniform": [f"{_NEW}RandomUniform())", f"{_NEW}uniform(maxval=1.0, seed=3))"],
    "keras.initializers.TruncatedNormal": [f"{_NEW}TruncatedNormal())", f"{_NEW}truncated_normal(stddev=2.0))"],
    "keras.initializers.VarianceScaling": [
        f"{_NEW}VarianceScaling(2.0, 'fan_out', 'untruncated_normal'))",
        f"{_NEW}Zeros())\ntf.get_variable('v', [2], initializer=tf.keras.initializers.Constant(3.0))",
    ],
    "keras.regularizers.L1L2": [
        "tf.keras.regularizers.L1L2()(f(2, 3))", "tf.keras.regularizers.L1L2(0.5, 0.25)(f(2, 3))",
    ],
    "keras.regularizers.l1": ["tf.keras.regularizers.l1()(f(2, 3))", "tf.keras.regularizers.l1(0.5)(f(3))"],
    "keras.regularizers.l2": [
        "tf.keras.regularizers.l2()(f(2, 3))",
        "tf.layers.dense(f(2, 3), 4, kernel_regularizer=tf.keras.regularizers.l2(0.5))",
    ],
    "keras.regularizers.l1_l2": ["tf.keras.regularizers.l1_l2()(f(2, 3))", "tf.keras.regularizers.l1_l2(1, 2)(f(3))"],
}  # fmt: skip
