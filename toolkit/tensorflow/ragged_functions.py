"""Functions of dense tensors that take ragged ones as well, and what computes them then.

Elementwise functions are computed on the innermost values; others have functions of their own.
"""

#: of one tensor, the first argument
UNARY = frozenset(
    """
    math.abs math.acos math.acosh math.asin math.asinh math.atan math.atanh math.ceil math.conj math.cos math.cosh
    math.digamma math.erf math.erfc math.exp math.expm1 math.floor math.imag math.is_finite math.is_inf math.is_nan
    math.lgamma math.log math.log1p math.log_sigmoid math.logical_not math.negative math.real math.reciprocal math.rint
    math.round math.rsqrt math.sigmoid math.sign math.sin math.sinh math.sqrt math.square math.tan math.tanh cast
    identity ones_like zeros_like stop_gradient bitwise.invert debugging.check_numerics nn.relu nn.relu6 nn.elu nn.selu
    nn.leaky_relu math.softplus nn.softsign nn.dropout clip_by_value strings.as_string strings.length strings.lower
    strings.upper strings.strip strings.regex_full_match strings.regex_replace strings.to_hash_bucket
    strings.to_hash_bucket_fast strings.to_hash_bucket_strong strings.to_number strings.unicode_script
    strings.unicode_transcode strings.substr io.decode_base64 io.encode_base64 io.decode_compressed to_float to_double
    to_int32 to_int64 dtypes.saturate_cast one_hot image.convert_image_dtype
    """.split()  # noqa: SIM905 (one line for each would be long)
)
#: of two tensors, the first two arguments
BINARY = frozenset(
    """
    math.add math.atan2 math.divide math.divide_no_nan math.equal math.floordiv math.floormod math.greater
    math.greater_equal math.less math.less_equal math.logical_and math.logical_or math.logical_xor math.maximum
    math.minimum math.multiply math.not_equal math.pow math.squared_difference math.subtract math.truediv
    truncatediv truncatemod bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor
    div realdiv floor_div
    """.split()  # noqa: SIM905 (one line for each would be long)
)
#: functions to "module:function" that takes the same arguments, by these names
OTHERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "concat": ("toolkit.client.ragged.arrays:concat", ("values", "axis", "name")),
    "stack": ("toolkit.client.ragged.arrays:stack", ("values", "axis", "name")),
    "gather": ("toolkit.client.ragged.arrays:gather", ("params", "indices", "axis", "batch_dims", "name")),
    "expand_dims": ("toolkit.client.ragged.arrays:expand_dims", ("value", "axis", "name")),
    "size": ("toolkit.client.ragged.arrays:size", ("value", "out_type", "name")),
    "rank": ("toolkit.client.ragged.arrays:rank", ("value", "name")),
    "reverse": ("toolkit.client.ragged.arrays:reverse", ("value", "axis", "name")),
    "boolean_mask": ("toolkit.client.ragged.arrays:boolean_mask", ("data", "mask", "name")),
    "where": ("toolkit.client.ragged.elementwise:where", ("condition", "x", "y", "name")),
    "where_v2": ("toolkit.client.ragged.elementwise:where", ("condition", "x", "y", "name")),
    **{
        f"math.{name}": (f"toolkit.client.ragged.reductions:{name}", ("value", "axis", "keepdims"))
        for name in (
            "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_mean", "reduce_any", "reduce_all",
            "reduce_variance", "reduce_std",
        )
    },
}  # fmt: skip
#: names of arguments of TensorFlow's functions for those above
RENAMED = {"reduction_indices": "axis", "keep_dims": "keepdims", "concat_dim": "axis", "dim": "axis"}
#: names of the tensor itself
SUBJECTS = frozenset(("input_tensor", "input", "tensor"))
