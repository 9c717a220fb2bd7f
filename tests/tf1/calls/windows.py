"""tf.nn: convolutions and pools of every rank, and what turns dilations into batches."""

_X1, _X2, _X3 = "f(2, 9, 3)", "f(2, 9, 8, 3)", "f(2, 5, 6, 7, 3)"

CALLS: dict[str, list[str]] = {
    "nn.conv1d": [
        f"tf.nn.conv1d({_X1}, f(3, 3, 4), 1, 'SAME')",
        f"tf.nn.conv1d(input={_X1}, filters=f(3, 3, 4), stride=2, padding='VALID', name='n')",
        "tf.nn.conv1d(f(2, 3, 9), f(3, 3, 4), 2, 'SAME', data_format='NCW', dilations=1)",
        f"tf.nn.conv1d({_X1}, f(3, 3, 4), 1, 'SAME', dilations=2, name='n')",
    ],
    "nn.conv3d": [
        f"tf.nn.conv3d({_X3}, f(3, 3, 3, 3, 4), [1, 1, 1, 1, 1], 'SAME')",
        f"tf.nn.conv3d({_X3}, filters=f(2, 2, 2, 3, 4), strides=[1, 2, 2, 2, 1], padding='VALID', name='n')",
    ],
    "nn.conv1d_transpose": [
        "tf.nn.conv1d_transpose(f(2, 5, 4), f(3, 3, 4), [2, 10, 3], 2)",
        "tf.nn.conv1d_transpose(f(2, 4, 5), f(3, 3, 4), i(3), 2, 'VALID', 'NCW', name='n')",
    ],
    "nn.conv3d_transpose": [
        "tf.nn.conv3d_transpose(f(2, 3, 3, 3, 4), f(3, 3, 3, 3, 4), [2, 6, 6, 6, 3], [1, 2, 2, 2, 1])",
        ("tf.nn.conv3d_transpose(f(2, 3, 3, 3, 4), filters=f(3, 3, 3, 3, 4), output_shape=i(5), "
        "strides=[1, 1, 1, 1, 1], padding='VALID', name='n')"),
    ],
    "nn.conv_transpose": [
        "tf.nn.conv_transpose(f(2, 4, 4, 4), f(3, 3, 3, 4), [2, 8, 8, 3], 2)",
        "tf.nn.conv_transpose(f(2, 5, 4), f(3, 3, 4), [2, 10, 3], 2, name='n')",
        "tf.nn.conv_transpose(f(2, 3, 3, 3, 4), f(3, 3, 3, 3, 4), [2, 6, 6, 6, 3], [2, 2, 2])",
    ],
    "nn.convolution": [
        f"tf.nn.convolution({_X2}, f(3, 3, 3, 4), 'SAME')",
        f"tf.nn.convolution({_X2}, f(3, 3, 3, 4), 'VALID', strides=[2, 1], name='n')",
        f"tf.nn.convolution({_X1}, f(3, 3, 4), 'SAME')",
        f"tf.nn.convolution({_X3}, f(2, 2, 2, 3, 4), padding='SAME', strides=2)",
        f"tf.nn.convolution({_X2}, f(3, 3, 3, 4), 'SAME', dilation_rate=[2, 2])",
        f"tf.nn.convolution({_X2}, f(3, 3, 3, 4), 'VALID', dilations=[2, 1], name='n')",
        f"tf.nn.convolution({_X1}, f(3, 3, 4), 'SAME', dilation_rate=2)",
        "tf.nn.convolution(f(None, None, None, 3), f(3, 3, 3, 4), 'SAME', dilation_rate=[2, 3])",
        "tf.nn.convolution(f(2, 3, 9, 8), f(3, 3, 3, 4), 'SAME', dilation_rate=[2, 2], data_format='NCHW')",
    ],
    "nn.atrous_conv2d": [
        f"tf.nn.atrous_conv2d({_X2}, f(3, 3, 3, 4), 2, 'SAME')",
        f"tf.nn.atrous_conv2d({_X2}, f(3, 3, 3, 4), 2, 'VALID', name='n')",
        f"tf.nn.atrous_conv2d({_X2}, f(3, 3, 3, 4), 1, 'SAME')",
    ],
    "nn.atrous_conv2d_transpose": [
        "tf.nn.atrous_conv2d_transpose(f(2, 8, 8, 4), f(3, 3, 3, 4), [2, 8, 8, 3], 2, 'SAME')",
        "tf.nn.atrous_conv2d_transpose(f(2, 4, 4, 4), f(3, 3, 3, 4), [2, 8, 8, 3], 2, 'VALID', name='n')",
        "tf.nn.atrous_conv2d_transpose(f(2, 8, 8, 4), f(3, 3, 3, 4), i(4), 2, 'SAME')",
        "tf.nn.atrous_conv2d_transpose(f(2, 8, 8, 4), f(3, 3, 3, 4), [2, 8, 8, 3], 1, 'SAME')",
    ],
    "nn.with_space_to_batch": [
        f"tf.nn.with_space_to_batch({_X2}, [2, 2], 'VALID', lambda x, *_: tf.identity(x))",
        f"tf.nn.with_space_to_batch({_X2}, [1, 1], 'VALID', lambda x, num_spatial_dims, padding: tf.nn.relu(x))",
        (f"tf.nn.with_space_to_batch({_X2}, [2, 2], 'SAME', "
        "lambda x, num_spatial_dims, padding: tf.nn.max_pool(x, 2, 1, padding), filter_shape=[2, 2])"),
    ],
    "nn.depthwise_conv2d": [
        f"tf.nn.depthwise_conv2d({_X2}, f(3, 3, 3, 2), [1, 1, 1, 1], 'SAME')",
        f"tf.nn.depthwise_conv2d({_X2}, f(3, 3, 3, 2), [1, 2, 2, 1], 'VALID', name='n')",
        f"tf.nn.depthwise_conv2d({_X2}, f(3, 3, 3, 2), [1, 1, 1, 1], 'SAME', rate=[2, 2])",
    ],
    "nn.depthwise_conv2d_native": [
        f"tf.nn.depthwise_conv2d_native({_X2}, f(3, 3, 3, 2), [1, 1, 1, 1], 'SAME')",
        f"tf.nn.depthwise_conv2d_native({_X2}, f(3, 3, 3, 2), [1, 2, 2, 1], 'VALID', name='n')",
    ],
    "nn.depthwise_conv2d_backprop_filter": [
        f"tf.nn.depthwise_conv2d_backprop_filter({_X2}, [3, 3, 3, 2], f(2, 9, 8, 6), [1, 1, 1, 1], 'SAME')",
        f"tf.nn.depthwise_conv2d_native_backprop_filter({_X2}, i(4), f(2, 9, 8, 6), [1, 1, 1, 1], 'SAME', name='n')",
    ],
    "nn.depthwise_conv2d_backprop_input": [
        "tf.nn.depthwise_conv2d_backprop_input([2, 9, 8, 3], f(3, 3, 3, 2), f(2, 9, 8, 6), [1, 1, 1, 1], 'SAME')",
        "tf.nn.depthwise_conv2d_native_backprop_input(i(4), f(3, 3, 3, 2), f(2, 9, 8, 6), [1, 1, 1, 1], 'SAME', name='n')",
    ],
    "nn.separable_conv2d": [
        f"tf.nn.separable_conv2d({_X2}, f(3, 3, 3, 2), f(1, 1, 6, 5), [1, 1, 1, 1], 'SAME')",
        f"tf.nn.separable_conv2d({_X2}, f(3, 3, 3, 2), f(1, 1, 6, 5), [1, 2, 2, 1], 'VALID', name='n')",
        f"tf.nn.separable_conv2d({_X2}, f(3, 3, 3, 2), f(1, 1, 6, 5), [1, 1, 1, 1], 'SAME', rate=[2, 3])",
    ],
    "nn.conv2d_backprop_filter": [
        f"tf.nn.conv2d_backprop_filter({_X2}, [3, 3, 3, 4], f(2, 9, 8, 4), [1, 1, 1, 1], 'SAME')",
        f"tf.nn.conv2d_backprop_filter({_X2}, i(4), f(2, 9, 8, 4), [1, 1, 1, 1], [[0, 0], [1, 1], [1, 1], [0, 0]], name='n')",
    ],
    "nn.conv2d_backprop_input": [
        "tf.nn.conv2d_backprop_input([2, 9, 8, 3], f(3, 3, 3, 4), f(2, 9, 8, 4), [1, 1, 1, 1], 'SAME')",
        ("tf.nn.conv2d_backprop_input(i(4), filters=f(3, 3, 3, 4), out_backprop=f(2, 9, 8, 4), strides=[1, 1, 1, 1], "
        "padding='SAME', name='n')"),
    ],
    "nn.dilation2d": [
        f"tf.nn.dilation2d({_X2}, f(3, 3, 3), [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
        f"tf.nn.dilation2d({_X2}, filters=f(3, 3, 3), strides=[1, 1, 1, 1], dilations=[1, 2, 2, 1], padding='VALID', name='n')",
    ],
    "nn.erosion2d": [
        f"tf.nn.erosion2d({_X2}, f(3, 3, 3), [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
        f"tf.nn.erosion2d({_X2}, f(3, 3, 3), [1, 1, 1, 1], [1, 2, 2, 1], 'VALID', name='n')",
    ],
    "nn.avg_pool1d": [
        f"tf.nn.avg_pool1d({_X1}, 2, 2, 'SAME')", f"tf.nn.avg_pool1d({_X1}, [3], [1], 'VALID', name='n')",
        "tf.nn.avg_pool1d(f(2, 3, 9), 2, 2, 'SAME', 'NCW')",
    ],
    "nn.max_pool1d": [
        f"tf.nn.max_pool1d({_X1}, 2, 2, 'SAME')", f"tf.nn.max_pool1d({_X1}, [3], [1], 'VALID', name='n')",
    ],
    "nn.max_pool2d": [
        f"tf.nn.max_pool2d({_X2}, 2, 2, 'SAME')", f"tf.nn.max_pool2d({_X2}, [2, 3], [2, 1], 'VALID', name='n')",
    ],
    "nn.avg_pool3d": [
        f"tf.nn.avg_pool3d({_X3}, 2, 2, 'SAME')", f"tf.nn.avg_pool3d({_X3}, [2, 1, 2], 2, 'VALID', name='n')",
    ],
    "nn.max_pool3d": [
        f"tf.nn.max_pool3d({_X3}, 2, 2, 'SAME')", f"tf.nn.max_pool3d({_X3}, [2, 1, 2], 2, 'VALID', name='n')",
    ],
    "nn.avg_pool_v2": [
        f"tf.nn.avg_pool_v2({_X2}, 2, 2, 'SAME')", f"tf.nn.avg_pool_v2({_X1}, 2, 2, 'VALID', name='n')",
        f"tf.nn.avg_pool_v2({_X3}, 2, 2, 'VALID')",
    ],
    "nn.max_pool_v2": [
        f"tf.nn.max_pool_v2({_X2}, 2, 2, 'SAME')", f"tf.nn.max_pool_v2({_X1}, 2, 2, 'VALID', name='n')",
        f"tf.nn.max_pool_v2({_X3}, 2, 2, 'VALID')",
    ],
    "nn.max_pool_with_argmax": [
        f"tf.nn.max_pool_with_argmax({_X2}, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
        f"tf.nn.max_pool_with_argmax({_X2}, [1, 2, 2, 1], [1, 1, 1, 1], 'VALID', output_dtype=tf.int32, include_batch_in_index=True, name='n')",
    ],
    "nn.fractional_max_pool": [
        "tf.nn.fractional_max_pool(f(2, 9, 8, 3), [1.0, 1.44, 1.73, 1.0])",
        "tf.nn.fractional_max_pool(f(2, 9, 8, 3), [1.0, 1.44, 1.73, 1.0], True, True, True, 3, 4, name='n')",
    ],
    "nn.pool": [
        f"tf.nn.pool({_X2}, [2, 2], 'MAX', 'SAME')", f"tf.nn.pool({_X2}, [2, 2], 'AVG', 'VALID', strides=[2, 2], name='n')",
        f"tf.nn.pool({_X1}, [2], 'MAX', 'VALID')", f"tf.nn.pool({_X3}, [2, 2, 2], 'AVG', 'SAME')",
        f"tf.nn.pool({_X2}, [2, 2], 'MAX', 'VALID', dilation_rate=[2, 2])",
        f"tf.nn.pool({_X2}, [2, 3], 'AVG', 'VALID', dilations=[2, 1], name='n')",
    ],
    "required_space_to_batch_paddings": [
        "tf.required_space_to_batch_paddings([9, 8], [2, 3])",
        "tf.required_space_to_batch_paddings([9, 8], [2, 3], [[1, 1], [0, 2]], name='n')",
        "tf.required_space_to_batch_paddings(i(2), [2, 3])",
        "tf.required_space_to_batch_paddings(i(2), [2, 3], i(2, 2), name='n')",
    ],
    "nn.space_to_batch": [
        "tf.nn.space_to_batch(f(2, 8, 8, 3), [[0, 0], [0, 0]], 2)",
        "tf.space_to_batch(f(2, 8, 8, 3), [[1, 1], [2, 2]], 2, name='n')",
    ],
    "batch_to_space": [
        "tf.batch_to_space(f(8, 4, 4, 3), [[0, 0], [0, 0]], 2)",
        "tf.batch_to_space(f(8, 4, 4, 3), [[1, 0], [0, 1]], 2, name='n')",
    ],
}  # fmt: skip
