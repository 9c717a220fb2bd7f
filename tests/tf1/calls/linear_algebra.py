"""tf.linalg, tf.quantization, tf.strings: functions of few nodes."""

CALLS: dict[str, list[str]] = {
    "linalg.adjoint": ["tf.linalg.adjoint(f(2, 3))", "tf.linalg.adjoint(c(2, 3), name='n')"],
    "linalg.cholesky_solve": ["tf.cholesky_solve(f(3, 3), f(3, 2))", "tf.linalg.cholesky_solve(d(3, 3), d(3, 2), name='n')"],
    "linalg.diag": ["tf.matrix_diag(f(3))", "tf.linalg.diag(f(2, 3), 'n', k=1, padding_value=2.0)"],
    "linalg.diag_part": ["tf.matrix_diag_part(f(3, 3))", "tf.linalg.diag_part(f(2, 3), 'n', k=(-1, 1))"],
    "linalg.eigh": ["tf.self_adjoint_eig(f(3, 3))", "tf.linalg.eigh(d(3, 3), name='n')"],
    "linalg.eigvalsh": ["tf.self_adjoint_eigvals(f(3, 3))", "tf.linalg.eigvalsh(d(3, 3), name='n')"],
    "linalg.logdet": ["tf.linalg.logdet(f(3, 3))", "tf.linalg.logdet(d(3, 3), name='n')"],
    "linalg.svd": ["tf.svd(f(3, 2))", "tf.linalg.svd(f(3, 2), True, name='n')", "tf.svd(f(3, 2), compute_uv=False)"],
    "linalg.trace": ["tf.trace(f(3, 3))", "tf.linalg.trace(f(2, 3, 3), name='n')"],
    "linalg.triangular_solve": [
        "tf.matrix_triangular_solve(f(3, 3), f(3, 2))", "tf.linalg.triangular_solve(d(3, 3), d(3, 2), False, True, name='n')",
    ],
    "linalg.expm": [
        "tf.linalg.expm(f(3, 3))", "tf.linalg.expm(d(2, 3, 3), name='n')", "tf.linalg.expm(c(None, 3, 3))",
        "tf.linalg.expm(tf.zeros([2, 0, 0]))",
    ],
    "linalg.pinv": [
        "tf.linalg.pinv(f(3, 2))", "tf.linalg.pinv(d(None, None), 1e-3, True, 'n')",
        "tf.linalg.pinv(tf.placeholder(tf.float32), validate_args=True)",
    ],
    "linalg.matrix_rank": [
        "tf.linalg.matrix_rank(f(3, 2))", "tf.linalg.matrix_rank(d(None, None), name='n')",
        "tf.linalg.matrix_rank(d(2, 3, 3), 1e-3, True)",
    ],
    "linalg.lstsq": [
        "tf.matrix_solve_ls(f(3, 2), f(3, 1))", "tf.linalg.lstsq(d(2, 3), d(2, 1), 0.5, name='n')",
        "tf.linalg.lstsq(f(3, 2), f(3, 1), fast=False)", "tf.linalg.lstsq(f(None, None), f(None, 1), l2_regularizer=f())",
        "tf.linalg.lstsq(f(600, 20, 10), f(600, 20, 1))",
    ],
    "linalg.lu_solve": [
        "tf.linalg.lu_solve(f(3, 3), i(3), f(3, 2))", "tf.linalg.lu_solve(d(2, 3, 3), i(2, 3), d(2, 3, 1), True, 'n')",
        "tf.linalg.lu_solve(f(None, None), i(None), f(None, 1), validate_args=True)",
    ],
    "linalg.lu_matrix_inverse": [
        "tf.linalg.lu_matrix_inverse(f(3, 3), i(3))", "tf.linalg.lu_matrix_inverse(d(2, 3, 3), i(2, 3), True, 'n')",
    ],
    "linalg.lu_reconstruct": [
        "tf.linalg.lu_reconstruct(f(3, 3), i(3))", "tf.linalg.lu_reconstruct(d(2, 3, 3), i(2, 3), True, 'n')",
    ],
    "linalg.normalize": ["tf.linalg.normalize(f(2, 3))", "tf.linalg.normalize(d(2, 3), 1, axis=-1, name='n')"],
    "linalg.tridiagonal_matmul": [
        "tf.linalg.tridiagonal_matmul(f(3, 4), f(4, 2))", "tf.linalg.tridiagonal_matmul([d(4)] * 3, d(4, 2), 'sequence', 'n')",
        "tf.linalg.tridiagonal_matmul(c(2, 4, 4), c(2, 4, 1), 'matrix')",
    ],
    "linalg.tridiagonal_solve": [
        "tf.linalg.tridiagonal_solve(f(3, 4), f(4, 2))", "tf.linalg.tridiagonal_solve([d(3), d(4), d(3)], d(4), 'sequence', name='n')",
        "tf.linalg.tridiagonal_solve(c(2, 4, 4), c(2, 1, 4), 'matrix', True, True, partial_pivoting=False)",
        "tf.linalg.tridiagonal_solve(c(3, 4), c(4), conjugate_rhs=True, perturb_singular=True)",
    ],
    "linalg.matvec": ["tf.linalg.matvec(f(3, 2), f(2))", "tf.linalg.matvec(f(3, 2), f(3), transpose_a=True, name='n')"],
    "quantization.dequantize": [
        "tf.dequantize(tf.placeholder(tf.quint8, [2]), 0.0, 1.0)",
        "tf.quantization.dequantize(tf.placeholder(tf.qint8, [2]), f(), f(), 'SCALED', 'n')",
    ],
    "quantization.quantize": [
        "tf.quantize(f(2), 0.0, 1.0, tf.quint8)", "tf.quantization.quantize(f(2), f(), f(), tf.qint8, 'SCALED', name='n')",
    ],
    "quantize_v2": ["tf.quantize_v2(f(2), 0.0, 1.0, tf.quint8)", "tf.quantize_v2(f(2), f(), f(), tf.qint8, 'SCALED', 'n')"],
    "quantization.quantize_and_dequantize": [
        "tf.quantization.quantize_and_dequantize(f(2), 0.0, 1.0)",
        "tf.quantization.quantize_and_dequantize(f(2), f(), f(), False, 4, True, name='n')",
    ],
    "quantization.quantize_and_dequantize_v2": [
        "tf.quantization.quantize_and_dequantize_v2(f(2), 0.0, 1.0)",
        "tf.quantization.quantize_and_dequantize_v2(f(2), f(), f(), False, 4, True, name='n')",
    ],
    "strings.regex_full_match": ["tf.strings.regex_full_match(s(2), 'a.*')", "tf.strings.regex_full_match(s(2), s(), name='n')"],
    "strings.regex_replace": [
        "tf.regex_replace(s(2), 'a', 'b')", "tf.strings.regex_replace(s(2), s(), 'b', False, name='n')",
    ],
    "strings.to_hash_bucket": [
        "tf.string_to_hash_bucket(s(2), 10)", "tf.strings.to_hash_bucket(input=s(2), num_buckets=10, name='n')",
    ],
    "strings.to_number": ["tf.string_to_number(s(2))", "tf.strings.to_number(input=s(2), out_type=tf.int32, name='n')"],
    "strings.reduce_join": [
        "tf.reduce_join(s(2, 3), 0)", "tf.strings.reduce_join(s(2, 3), keep_dims=True, separator='-', name='n')",
        "tf.reduce_join(s(2, 3), reduction_indices=[0, 1])",
    ],
    "substr": ["tf.substr(s(2), 1, 2)", "tf.substr(s(2), i(2), i(2), name='n', unit='UTF8_CHAR')"],
    "decode_raw": ["tf.decode_raw(s(2), tf.uint8)", "tf.decode_raw(bytes=s(2), out_type=tf.int32, little_endian=False, name='n')"],
    "eye": ["tf.eye(3)", "tf.eye(3, 4, [2], tf.float64, name='n')", "tf.eye(i(), i())"],
    "roll": ["tf.roll(f(4), 1, 0)", "tf.manip.roll(f(2, 3), [1, 2], [0, 1], name='n')"],
    "norm": ["tf.norm(f(2, 3))", "tf.norm(f(2, 3), 1, 1, name='n')", "tf.norm(f(2, 3), np.inf, axis=0, keep_dims=True)",
             "tf.norm(f(2, 3), 3)", "tf.norm(f(2, 3), 'fro', axis=[-2, -1])"],
    "tensordot": ["tf.tensordot(f(2, 3), f(3, 4), 1)", "tf.tensordot(f(2, 3, 4), f(4, 3), [[2, 1], [0, 1]], name='n')"],
    "nn.normalize_moments": [
        "tf.nn.normalize_moments(f(), f(2), f(2), None)", "tf.nn.normalize_moments(f(), f(2), f(2), f(), name='n')",
    ],
    "nn.weighted_moments": [
        "tf.nn.weighted_moments(f(4, 3), [0], f(4, 1))",
        "tf.nn.weighted_moments(f(4, 3), [0, 1], f(4, 3), keep_dims=True, name='n')",
        "tf.nn.weighted_moments(tf.placeholder(tf.float16, [4, 3]), [0], i(4, 1))",
    ],
    "nn.sufficient_statistics": [
        "tf.nn.sufficient_statistics(f(4, 3), [0])",
        "tf.nn.sufficient_statistics(f(None, 3), [0], f(), keep_dims=True, name='n')",
    ],
    "nn.ctc_greedy_decoder": [
        "tf.nn.ctc_greedy_decoder(f(5, 2, 4), i(2))", "tf.nn.ctc_greedy_decoder(f(5, 2, 4), i(2), False, 0)",
    ],
    "nn.ctc_beam_search_decoder": [
        "tf.nn.ctc_beam_search_decoder(f(5, 2, 4), i(2))", "tf.nn.ctc_beam_search_decoder(f(5, 2, 4), i(2), 10, 2, False)",
    ],
    "nn.ctc_beam_search_decoder_v2": [
        "tf.nn.ctc_beam_search_decoder_v2(f(5, 2, 4), i(2))", "tf.nn.ctc_beam_search_decoder_v2(f(5, 2, 4), i(2), 10, 2)",
    ],
    "nn.ctc_loss": [
        "tf.nn.ctc_loss(tf.SparseTensor(l(None, 2), i(None), l(2)), f(5, 2, 4), i(2))",
        "tf.nn.ctc_loss(tf.SparseTensor(l(None, 2), i(None), l(2)), f(2, 5, 4), i(2), True, False, time_major=False)",
    ],
}  # fmt: skip
