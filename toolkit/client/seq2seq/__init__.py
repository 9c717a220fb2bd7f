"""Sequences to sequences: decoders that are unrolled (`unrolled`), and losses over steps (`loss`).

What TensorFlow 1 had in tf.contrib.legacy_seq2seq and tf.contrib.seq2seq; variables have its names.
"""
