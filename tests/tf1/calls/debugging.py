"""tf.debugging: what fails when it does not hold."""

_PAIRS = ("equal", "none_equal", "less", "less_equal", "greater", "greater_equal")
_SIGNS = ("negative", "positive", "non_negative", "non_positive")

CALLS: dict[str, list[str]] = {
    **{
        f"debugging.assert_{name}": [
            f"tf.assert_{name}(f(2), f(2))", f"tf.debugging.assert_{name}(i(2), i(2), message='m', name='n')",
            f"tf.assert_{name}(f(2), f(2), data=['d', f()], summarize=5)",
        ]
        for name in _PAIRS
    },
    **{
        f"debugging.assert_{name}": [
            f"tf.assert_{name}(f(2))", f"tf.debugging.assert_{name}(i(2), message='m', name='n')",
            f"tf.assert_{name}(f(2), data=['d'], summarize=5)",
        ]
        for name in _SIGNS
    },
    "debugging.Assert": ["tf.Assert(b(), ['a'])", "tf.debugging.Assert(b(), [f(2), 'a'], 5, name='n')"],
    "debugging.assert_near": [
        "tf.assert_near(f(2), f(2))", "tf.debugging.assert_near(d(2), d(2), 0.1, 0.2, message='m', name='n')",
    ],
    "debugging.assert_all_finite": [
        "tf.verify_tensor_all_finite(f(2), 'm')", "tf.debugging.assert_all_finite(x=d(2), message='m', name='n')",
    ],
    "debugging.assert_integer": ["tf.assert_integer(i(2))", "tf.debugging.assert_integer(l(2), message='m', name='n')"],
    "debugging.assert_shapes": [
        "tf.debugging.assert_shapes({f(2, 3): ('N', 'Q'), i(2, 4): ('N', 'D')})",
        "tf.debugging.assert_shapes([(f(None, 3), ('N', 3)), (i(None, 4), ('N', 'D')), (d(None), ['D'])])",
        "tf.debugging.assert_shapes([(f(None), ()), (f(), ('N',))], message='m', name='n')",
        "tf.debugging.assert_shapes([(tf.placeholder(tf.float32), ('N', 'M')), (f(None, None), ('M', None))])",
        "tf.debugging.assert_shapes([(tf.placeholder(tf.float32), ('*', 'N', 4)), (f(None, 2), '.N')], ['d'], 5)",
        "tf.debugging.assert_shapes([(f(2, None, 3), (..., 'N')), (f(3, None), None), (f(None), ('*', 'N'))])",
    ],
    "debugging.assert_type": [
        "tf.assert_type(i(2), tf.int32)", "tf.debugging.assert_type(f(2), tf.float32, message='m', name='n')",
    ],
    "debugging.assert_rank": [
        "tf.assert_rank(f(2, 3), 2)", "tf.debugging.assert_rank(tf.placeholder(tf.float32), 2, message='m', name='n')",
        "tf.assert_rank(tf.placeholder(tf.float32), i())",
    ],
    "debugging.assert_rank_at_least": [
        "tf.assert_rank_at_least(f(2, 3), 1)",
        "tf.debugging.assert_rank_at_least(tf.placeholder(tf.float32), 2, message='m', name='n')",
    ],
    "debugging.assert_rank_in": [
        "tf.assert_rank_in(f(2, 3), (1, 2))",
        "tf.debugging.assert_rank_in(tf.placeholder(tf.float32), (1, 2), message='m', name='n')",
    ],
    "debugging.assert_scalar": ["tf.assert_scalar(f())", "tf.debugging.assert_scalar(1.0, name='n')"],
    "debugging.is_numeric_tensor": ["tf.debugging.is_numeric_tensor(f(2))", "tf.debugging.is_numeric_tensor(1)"],
    "debugging.assert_same_float_dtype": [
        "tf.assert_same_float_dtype([f(2), f(3)])", "tf.debugging.assert_same_float_dtype([f(2)], tf.float32)",
    ],
    "debugging.assert_proper_iterable": [
        "tf.assert_proper_iterable([1, 2])", "tf.debugging.assert_proper_iterable((f(2),))",
    ],
}  # fmt: skip
