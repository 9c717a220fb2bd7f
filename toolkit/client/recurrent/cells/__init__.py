"""Cells of recurrent networks beyond those of tf.nn.rnn_cell: what TensorFlow 1 had in tf.contrib.rnn.

`gated`, `lstm`, `convolutional`, `frequency`: cells; `wrappers`: cells around cells; `fused`: cells as one op, and all
steps at once; `stacked`: layers of them in both directions; `linear`: what they share.
"""
