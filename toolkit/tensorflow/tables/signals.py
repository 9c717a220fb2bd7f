"""tf.signal. What is one op needs no row."""

HOMES: dict[str, str] = {
    "toolkit.client.signals.windows": """
        signal.hann_window signal.hamming_window signal.kaiser_window signal.kaiser_bessel_derived_window
        signal.vorbis_window
    """,
    "toolkit.client.signals.framing": "signal.frame signal.overlap_and_add",
    "toolkit.client.signals.fourier": """
        signal.rfft signal.rfft2d signal.rfft3d signal.irfft signal.irfft2d signal.irfft3d signal.fftnd signal.ifftnd
        signal.rfftnd signal.irfftnd signal.fftshift signal.ifftshift
    """,
    "toolkit.client.signals.spectral": "signal.stft signal.inverse_stft signal.inverse_stft_window_fn",
    "toolkit.client.signals.cosine": "signal.dct signal.idct signal.mdct signal.inverse_mdct",
    "toolkit.client.signals.mel": "signal.linear_to_mel_weight_matrix signal.mfccs_from_log_mel_spectrograms",
    "toolkit.client.arrays.linspace": "linspace",
}
