"""tf.nn: convolutions and pools of every rank."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.ops.windows": """
        nn.conv1d nn.conv3d nn.conv3d_transpose nn.convolution nn.depthwise_conv2d nn.separable_conv2d
        nn.depthwise_conv2d_native nn.depthwise_conv2d_backprop_filter nn.depthwise_conv2d_backprop_input
        nn.conv2d_backprop_filter nn.conv2d_backprop_input nn.dilation2d nn.erosion2d nn.max_pool_with_argmax
        nn.fractional_max_pool nn.pool nn.space_to_batch batch_to_space
    """,
    "toolkit.client.nn.convolutions": """
        nn.conv1d_transpose nn.conv_transpose nn.atrous_conv2d nn.atrous_conv2d_transpose
    """,
    "toolkit.client.nn.pooling": """
        nn.avg_pool1d nn.max_pool1d nn.max_pool2d nn.avg_pool3d nn.max_pool3d nn.avg_pool_v2 nn.max_pool_v2
    """,
    "toolkit.client.nn.space_to_batch": "required_space_to_batch_paddings nn.with_space_to_batch",
}
