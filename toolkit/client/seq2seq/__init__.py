"""Sequences to sequences: decoders that are unrolled (`unrolled`), and losses over steps (`loss`).

Decoders in loops: `decoder` runs them; `helpers` and `scheduled` choose their inputs, with `sampling`; `beam_search`
keeps the best of several (`beam_step`, `beams`). `attention` and `monotonic` weigh the steps of a memory, for a cell
around a cell (`wrapper`).

What TensorFlow 1 had in tf.contrib.legacy_seq2seq and tf.contrib.seq2seq; variables have its names.
"""
