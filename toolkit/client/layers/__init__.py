"""Layers: classes with TensorFlow 1's names, variables and nodes (tf.layers), and functions for programs and specs.

Variables are called `name/kernel`, `name/bias`, `name/gamma`, ... and operations `name/Conv2D`, `name/BiasAdd`.
"""

from __future__ import annotations

from toolkit.client.layers.attention import layer_normalization, multi_head_attention
from toolkit.client.layers.base import InputSpec, Layer
from toolkit.client.layers.convolutional import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    SeparableConv1D,
    SeparableConv2D,
)  # fmt: skip
from toolkit.client.layers.core import Dense, Dropout, Flatten
from toolkit.client.layers.functions import (
    Activation,
    Regularizer,
    batch_normalization,
    conv2d,
    dense,
    depthwise_conv2d,
    flatten,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
)  # fmt: skip
from toolkit.client.layers.normalization import BatchNormalization
from toolkit.client.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)  # fmt: skip

__all__ = [
    "Activation",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Flatten",
    "InputSpec",
    "Layer",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "Regularizer",
    "SeparableConv1D",
    "SeparableConv2D",
    "batch_normalization",
    "conv2d",
    "dense",
    "depthwise_conv2d",
    "flatten",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "layer_normalization",
    "multi_head_attention",
]  # fmt: skip
