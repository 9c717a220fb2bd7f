"""Probability distributions, as tf.distributions had them: batches of them, with densities, moments, draws.

`base` is what all share, `divergence` compares two of them; `location_scale`, `gamma`, `discrete` are the families;
`special` has functions of the normal distribution, `parameters` what is checked.
"""
