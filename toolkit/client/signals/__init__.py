"""Signals: windows, frames, Fourier and cosine transforms, mel scales.

`fourier` has transforms of real tensors and of chosen axes, `framing` cuts signals into frames and adds them up again,
`spectral` joins both, `cosine` has the transforms made of Fourier's, `mel` what speech recognition is fed with.
"""
