"""Layers as functions whose arguments scopes give (`argument_scopes`), as tf.contrib.layers and tf.contrib.slim have.

They make their variables in MODEL_VARIABLES, called weights and biases, by the classes of `toolkit.client.layers` where
there is one for the layer.
"""
