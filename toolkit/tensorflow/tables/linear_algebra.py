"""tf.linalg, tf.quantization, tf.strings, tf.nest: functions of few nodes."""

HOMES: dict[str, str] = {
    "toolkit.client.linalg.linalg_ops": """
        linalg.adjoint linalg.cholesky_solve linalg.diag linalg.diag_part linalg.eigh linalg.eigvalsh linalg.logdet
        linalg.svd linalg.trace linalg.triangular_solve linalg.matvec linalg.normalize eye tensordot
    """,
    "toolkit.client.linalg.matrix_functions": """
        linalg.expm linalg.pinv linalg.matrix_rank linalg.lstsq=least_squares linalg.lu_solve linalg.lu_matrix_inverse
        linalg.lu_reconstruct
    """,
    "toolkit.client.linalg.tridiagonal": "linalg.tridiagonal_matmul linalg.tridiagonal_solve",
    "toolkit.client.nn.ctc_ops": "nn.ctc_greedy_decoder nn.ctc_beam_search_decoder nn.ctc_beam_search_decoder_v2",
    "toolkit.client.gradients.custom": "custom_gradient grad_pass_through",
    "toolkit.tensorflow.families.ops.few_ops": """
        quantization.dequantize quantization.quantize quantize_v2 quantization.quantize_and_dequantize
        quantization.quantize_and_dequantize_v2 strings.regex_full_match strings.regex_replace strings.to_hash_bucket
        strings.to_number strings.reduce_join substr decode_raw roll norm nn.silu nn.normalize_moments
        nn.sufficient_statistics nn.weighted_moments nn.ctc_loss nest.is_nested
    """,
}
