"""tf.debugging: what fails when it does not hold."""

HOMES: dict[str, str] = {
    "toolkit.client.checks.assertions": """
        debugging.assert_equal debugging.assert_none_equal debugging.assert_less debugging.assert_less_equal
        debugging.assert_greater debugging.assert_greater_equal debugging.assert_negative debugging.assert_positive
        debugging.assert_non_negative debugging.assert_non_positive debugging.assert_near debugging.assert_integer
        debugging.assert_type debugging.assert_rank debugging.assert_rank_at_least debugging.assert_rank_in
        debugging.assert_scalar debugging.is_numeric_tensor debugging.assert_same_float_dtype
        debugging.assert_proper_iterable
    """,
    "toolkit.client.checks.shape_assertions": "debugging.assert_shapes",
    "toolkit.client.flow.control_flow": "debugging.Assert",
    "toolkit.client.metrics.confusion": "math.confusion_matrix",
    "toolkit.tensorflow.families.ops.debugging": "debugging.assert_all_finite",
}
