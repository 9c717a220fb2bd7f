"""tf.math, casts and reductions. What is one op needs no row."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.ops.math": """
        math.abs math.add math.subtract math.multiply math.divide math.truediv div math.divide_no_nan=div_no_nan
        math.pow math.round math.sign math.ceil math.equal math.not_equal math.logical_xor math.log_sigmoid math.add_n
        math.accumulate_n math.scalar_mul cast to_float to_double to_int32 to_int64
        to_bfloat16 to_complex64 to_complex128 dtypes.complex math.real math.imag math.angle math.conj linalg.matmul
        range math.zero_fraction linalg.global_norm clip_by_value clip_by_norm clip_by_global_norm clip_by_average_norm
    """,
    "toolkit.client.math.casts": "dtypes.saturate_cast",
    "toolkit.tensorflow.families.ops.reductions": """
        math.reduce_sum math.reduce_mean math.reduce_prod math.reduce_max math.reduce_min math.reduce_all
        math.reduce_any math.reduce_logsumexp math.reduce_variance math.reduce_std math.reduce_euclidean_norm
        math.count_nonzero math.argmax math.argmin
    """,
}
