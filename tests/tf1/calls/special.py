"""tf.math and tf.random beyond arithmetic: special functions, counts, segments, draws."""

_SPECIAL = (
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "dawsn",
    "expint",
    "fresnel_cos",
    "fresnel_sin",
    "spence",
)
_BESSEL = ("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e")

CALLS: dict[str, list[str]] = {
    **{f"math.special.{name}": [f"tf.math.special.{name}(f(2))", f"tf.math.special.{name}([0.5], name='n')"] for name in _SPECIAL},
    **{f"math.{name}": [f"tf.math.{name}(f(2))", f"tf.math.{name}([0.5], name='n')"] for name in _BESSEL},
    "math.bincount": [
        'tf.bincount(i(5))',
        'tf.math.bincount(i(5), f(5), minlength=3, maxlength=9)',
        'tf.bincount(i(5), maxlength=4, dtype=tf.int64)',
    ],
    "math.confusion_matrix": [
        'tf.confusion_matrix(l(4), l(4))',
        "tf.confusion_matrix(i(4), i(4), 3, name='n', weights=f(4))",
        'tf.math.confusion_matrix([1, 2], [0, 2], num_classes=4, dtype=tf.float32)',
    ],
    "math.erfcinv": [
        'tf.math.erfcinv(f(2))',
        "tf.math.erfcinv([0.5], name='n')",
    ],
    "math.erfinv": [
        'tf.math.erfinv(f(2))',
        "tf.math.erfinv([0.5], name='n')",
    ],
    "math.ndtri": [
        'tf.math.ndtri(f(2))',
        "tf.math.ndtri([0.5], name='n')",
    ],
    "math.reciprocal_no_nan": [
        'tf.math.reciprocal_no_nan(f(2))',
        "tf.math.reciprocal_no_nan([0.5], name='n')",
    ],
    "math.is_non_decreasing": [
        'tf.is_non_decreasing(f(4))',
        "tf.math.is_non_decreasing(i(2, 3), name='n')",
    ],
    "math.is_strictly_increasing": [
        'tf.is_strictly_increasing(f(4))',
        "tf.math.is_strictly_increasing(i(2, 3), name='n')",
    ],
    "math.lbeta": [
        'tf.lbeta(f(2, 3))',
        "tf.math.lbeta([1.0, 2.0], name='n')",
    ],
    "math.multiply_no_nan": [
        'tf.math.multiply_no_nan(f(2), f(2))',
        "tf.math.multiply_no_nan(f(2), 2.0, name='n')",
    ],
    "math.xdivy": [
        'tf.math.xdivy(f(2), f(2))',
        "tf.math.xdivy(f(2), 2.0, name='n')",
    ],
    "math.xlog1py": [
        'tf.math.xlog1py(f(2), f(2))',
        "tf.math.xlog1py(f(2), 2.0, name='n')",
    ],
    "math.polyval": [
        'tf.math.polyval([f(2), f(2), f(2)], f(2))',
        "tf.math.polyval([1.0, 2.0], f(2), name='n')",
    ],
    "math.sobol_sample": [
        'tf.math.sobol_sample(2, 3)',
        "tf.math.sobol_sample(2, i(), 1, tf.float64, name='n')",
    ],
    "math.unsorted_segment_mean": [
        'tf.unsorted_segment_mean(f(4, 3), i(4), 5)',
        "tf.math.unsorted_segment_mean(f(4), l(4), 5, name='n')",
    ],
    "math.unsorted_segment_sqrt_n": [
        'tf.unsorted_segment_sqrt_n(f(4, 3), i(4), 5)',
        "tf.math.unsorted_segment_sqrt_n(f(4), l(4), 5, name='n')",
    ],
    "random.log_uniform_candidate_sampler": [
        'tf.nn.log_uniform_candidate_sampler(l(2, 1), 1, 4, True, 10)',
        "tf.random.log_uniform_candidate_sampler(l(2, 2), 2, 4, False, 10, seed=3, name='n')",
    ],
    "random.uniform_candidate_sampler": [
        'tf.nn.uniform_candidate_sampler(l(2, 1), 1, 4, True, 10)',
        "tf.random.uniform_candidate_sampler(l(2, 2), 2, 4, False, 10, seed=3, name='n')",
    ],
    "random.learned_unigram_candidate_sampler": [
        'tf.nn.learned_unigram_candidate_sampler(l(2, 1), 1, 4, True, 10)',
        "tf.random.learned_unigram_candidate_sampler(l(2, 2), 2, 4, False, 10, seed=3, name='n')",
    ],
    "random.all_candidate_sampler": [
        'tf.nn.all_candidate_sampler(l(2, 1), 1, 4, True)',
        "tf.random.all_candidate_sampler(l(2, 2), 2, 4, False, seed=3, name='n')",
    ],
    "random.fixed_unigram_candidate_sampler": [
        'tf.nn.fixed_unigram_candidate_sampler(l(2, 1), 1, 2, True, 3, unigrams=[0.1, 0.2, 0.3])',
        "tf.random.fixed_unigram_candidate_sampler(l(2, 1), 1, 2, True, 3, distortion=0.5, unigrams=[1, 2, 3], seed=3, name='n')",
    ],
    "nn.compute_accidental_hits": [
        'tf.nn.compute_accidental_hits(l(2, 1), l(4), 1)',
        "tf.nn.compute_accidental_hits(l(2, 2), l(4), 2, seed=3, name='n')",
    ],
    "random.categorical": [
        'tf.random.categorical(f(2, 3), 4)',
        "tf.random.categorical(f(2, 3), i(), tf.int32, 3, name='n')",
    ],
    "random.gamma": [
        'tf.random_gamma([2], f(3))',
        "tf.random.gamma(i(1), f(3), f(3), seed=3, name='n')",
        'tf.random_gamma([], 0.5, 2.0, tf.float64)',
    ],
    "random.poisson": [
        'tf.random_poisson(f(3), [2])',
        "tf.random.poisson([1.0], i(1), tf.int64, 3, name='n')",
    ],
    "random.stateless_binomial": [
        'tf.random.stateless_binomial([2], [1, 2], 3.0, 0.5)',
        "tf.random.stateless_binomial(i(1), l(2), f(2), f(2), tf.int64, name='n')",
    ],
    "random.stateless_categorical": [
        'tf.random.stateless_categorical(f(2, 3), 4, [1, 2])',
        "tf.random.stateless_categorical(f(2, 3), i(), l(2), tf.int32, name='n')",
    ],
    "random.stateless_multinomial": [
        'tf.random.stateless_multinomial(f(2, 3), 4, [1, 2])',
        "tf.random.stateless_multinomial(f(2, 3), i(), l(2), tf.int32, name='n')",
    ],
    "random.stateless_gamma": [
        'tf.random.stateless_gamma([2], [1, 2], f(2))',
        "tf.random.stateless_gamma([2], l(2), [1.0, 2.0], f(2), name='n')",
    ],
    "random.stateless_normal": [
        'tf.random.stateless_normal([2], [1, 2])',
        "tf.random.stateless_normal(i(1), l(2), 1.0, f(), name='n')",
    ],
    "random.stateless_truncated_normal": [
        'tf.random.stateless_truncated_normal([2], [1, 2])',
        "tf.random.stateless_truncated_normal(i(1), l(2), 1.0, f(), name='n')",
    ],
    "random.stateless_parameterized_truncated_normal": [
        'tf.random.stateless_parameterized_truncated_normal([2], [1, 2])',
        "tf.random.stateless_parameterized_truncated_normal([2], l(2), f(2), 2.0, -1.0, 1.0, name='n')",
    ],
    "random.stateless_poisson": [
        'tf.random.stateless_poisson([2], [1, 2], f(2))',
        "tf.random.stateless_poisson(i(1), l(2), 3.0, tf.int64, name='n')",
    ],
    "random.stateless_uniform": [
        'tf.random.stateless_uniform([2], [1, 2])',
        "tf.random.stateless_uniform(i(1), l(2), -1.0, 1.0, name='n')",
        'tf.random.stateless_uniform([2], [1, 2], 0, 10, tf.int32)',
        'tf.random.stateless_uniform([2], [1, 2], None, None, tf.int32)',
    ],
    "random.fold_in": [
        'tf.random.fold_in([1, 2], 3)',
        'tf.random.fold_in(l(2), l())',
    ],
    "random.split": [
        'tf.random.split([1, 2])',
        'tf.random.split(l(2), 3)',
    ],
}  # fmt: skip
