"""Signals."""

_WINDOWS = ("hann_window", "hamming_window", "kaiser_window", "kaiser_bessel_derived_window", "vorbis_window")

CALLS: dict[str, list[str]] = {
    **{
        f"signal.{name}": [
            f"tf.signal.{name}(8)", f"tf.signal.{name}(i(), dtype=tf.float64, name='n')", f"tf.signal.{name}(7)",
            *([f"tf.signal.{name}(1)"] if "m" in name or "nn" in name else []),
        ]
        for name in _WINDOWS
    },
    "signal.frame": [
        "tf.signal.frame(f(2, 10), 4, 2)", "tf.signal.frame(f(2, 10), 4, 3, pad_end=True, pad_value=1.0, name='n')",
        "tf.signal.frame(f(None, 10, 3), 4, 2, axis=1)", "tf.signal.frame(f(None, None), 4, 3, pad_end=True)",
        "tf.signal.frame(f(10), i(), i())", "tf.signal.frame(f(10), 3, 1)",
        "tf.signal.frame(tf.placeholder(tf.float32, None), 3, 2)",
    ],
    "signal.overlap_and_add": [
        "tf.signal.overlap_and_add(f(2, 5, 4), 2)", "tf.signal.overlap_and_add(f(5, 4), 4)",
        "tf.signal.overlap_and_add(f(None, 5, 4), 3, name='n')", "tf.signal.overlap_and_add(f(5, 4), i())",
        "tf.signal.overlap_and_add(f(None, None, None), 3)",
    ],
    **{
        f"signal.{name}": [
            f"tf.signal.{name}(f(4, 6, 8))", f"tf.signal.{name}(d(4, 6, 8), {lengths}, name='n')",
            f"tf.signal.{name}(f(None, None, None))", f"tf.signal.{name}(f(None, 3, 8), {lengths})",
            f"tf.spectral.{name}(f(4, 6, 8), i({rank}))",
        ]
        for rank, name, lengths in ((1, "rfft", "[10]"), (2, "rfft2d", "[8, 5]"), (3, "rfft3d", "[4, 8, 9]"))
    },
    **{
        f"signal.{name}": [
            f"tf.signal.{name}(c(4, 6, 5))", f"tf.signal.{name}(c(4, 6, 5), {lengths}, name='n')",
            f"tf.signal.{name}(c(None, None, None))", f"tf.signal.{name}(c(None, 3, 5), {lengths})",
        ]
        for name, lengths in (("irfft", "[10]"), ("irfft2d", "[8, 5]"), ("irfft3d", "[4, 8, 12]"))
    },
    "signal.fftnd": ["tf.signal.fftnd(c(4, 6))", "tf.signal.fftnd(c(4, 6), [8], [0], 'ortho', name='n')"],
    "signal.ifftnd": ["tf.signal.ifftnd(c(4, 6))", "tf.signal.ifftnd(c(4, 6), [4, 8], [0, 1], 'forward', name='n')"],
    "signal.rfftnd": ["tf.signal.rfftnd(f(4, 6))", "tf.signal.rfftnd(f(4, 6), [4, 8], [0, 1], 'ortho', name='n')"],
    "signal.irfftnd": ["tf.signal.irfftnd(c(4, 6))", "tf.signal.irfftnd(c(4, 6), [4, 12], [0, 1], 'forward', name='n')"],
    **{
        f"signal.{name}": [
            f"tf.signal.{name}(f(4, 6))", f"tf.signal.{name}(f(4, 6), 1, name='n')", f"tf.signal.{name}(f(None, 6), [-1, 0])",
        ]
        for name in ("fftshift", "ifftshift")
    },
    "signal.stft": [
        "tf.signal.stft(f(2, 100), 20, 10)", "tf.signal.stft(f(None, None), 20, 10, 64, None, True, name='n')",
        "tf.signal.stft(f(100), i(), i())", "tf.signal.stft(d(100), 16, 8, window_fn=tf.signal.hamming_window)",
    ],
    "signal.inverse_stft": [
        "tf.signal.inverse_stft(c(2, 9, 17), 32, 16)", "tf.signal.inverse_stft(c(2, 9, 17), 20, 10, window_fn=None)",
        "tf.signal.inverse_stft(c(None, None, 17), 40, 10, 32, tf.signal.inverse_stft_window_fn(10), name='n')",
        "tf.signal.inverse_stft(c(9, 17), i(), 10)",
    ],
    "signal.inverse_stft_window_fn": [
        "tf.signal.inverse_stft_window_fn(10)(20, tf.float32)",
        "tf.signal.inverse_stft_window_fn(i(), tf.signal.hamming_window, name='n')(20, dtype=tf.float64)",
    ],
    **{
        f"signal.{name}": [
            *[f"tf.signal.{name}(f(3, 8), {kind})" for kind in (1, 2, 3, 4)],
            *[f"tf.signal.{name}(f(3, 8), {kind}, norm='ortho', name='n')" for kind in (2, 3, 4)],
            f"tf.signal.{name}(f(3, 8), n=5)", f"tf.signal.{name}(f(3, 8), 3, n=12)", f"tf.signal.{name}(f(None, None))",
            f"tf.spectral.{name}(d(None, None), 2, n=5)",
        ]
        for name in ("dct", "idct")
    },
    "signal.mdct": [
        "tf.signal.mdct(f(2, 64), 16)", "tf.signal.mdct(f(64), 16, None, True, 'ortho', name='n')", "tf.signal.mdct(f(64), i())",
    ],
    "signal.inverse_mdct": [
        "tf.signal.inverse_mdct(f(2, 7, 8))", "tf.signal.inverse_mdct(f(2, 7, 8), tf.signal.kaiser_bessel_derived_window, 'ortho')",
        "tf.signal.inverse_mdct(f(None, 7, 8), None, name='n')",
    ],
    "signal.linear_to_mel_weight_matrix": [
        "tf.signal.linear_to_mel_weight_matrix()",
        "tf.signal.linear_to_mel_weight_matrix(8, 65, 16000, 80.0, 7600.0, tf.float64, name='n')",
        "tf.signal.linear_to_mel_weight_matrix(8, 65, i())",
    ],
    "signal.mfccs_from_log_mel_spectrograms": [
        "tf.signal.mfccs_from_log_mel_spectrograms(f(2, 5, 20))", "tf.signal.mfccs_from_log_mel_spectrograms(f(None, None), name='n')",
    ],
    "linspace": [
        "tf.linspace(0.0, 1.0, 5)", "tf.lin_space(f(2), 1.0, i(), name='n')", "tf.linspace([1.0, 2.0], [3.0, 4.0], 3, axis=-1)",
        "tf.linspace(1, 5, 3)",
    ],
}  # fmt: skip
