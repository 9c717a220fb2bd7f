"""tf.math and tf.random beyond arithmetic: special functions, counts, segments, draws."""

HOMES: dict[str, str] = {
    "toolkit.client.math.special_ops": """
        math.special.bessel_j0 math.special.bessel_j1 math.special.bessel_k0 math.special.bessel_k0e
        math.special.bessel_k1 math.special.bessel_k1e math.special.bessel_y0 math.special.bessel_y1 math.special.dawsn
        math.special.expint math.special.fresnel_cos math.special.fresnel_sin math.special.spence math.bessel_i0
        math.bessel_i0e math.bessel_i1 math.bessel_i1e math.bincount math.erfcinv math.erfinv math.ndtri
        math.reciprocal_no_nan math.is_non_decreasing math.is_strictly_increasing math.lbeta math.multiply_no_nan
        math.xdivy math.xlog1py math.polyval math.sobol_sample math.unsorted_segment_mean math.unsorted_segment_sqrt_n
    """,
    "toolkit.client.random.more_random_ops": """
        random.categorical random.gamma=random_gamma random.poisson=random_poisson random.all_candidate_sampler
        random.fixed_unigram_candidate_sampler random.learned_unigram_candidate_sampler
        random.log_uniform_candidate_sampler random.uniform_candidate_sampler nn.compute_accidental_hits
        random.stateless_binomial=stateless_random_binomial random.stateless_categorical random.stateless_multinomial
        random.stateless_gamma=stateless_random_gamma random.stateless_normal=stateless_random_normal
        random.stateless_parameterized_truncated_normal random.stateless_poisson=stateless_random_poisson
        random.stateless_truncated_normal random.stateless_uniform=stateless_random_uniform random.fold_in random.split
    """,
}
