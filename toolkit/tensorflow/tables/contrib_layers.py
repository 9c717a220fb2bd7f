"""tf.contrib.layers: layers whose arguments scopes give."""

HOMES: dict[str, str] = {
    "toolkit.client.scoped_layers.convolutional": """
        contrib.layers.convolution contrib.layers.conv1d=convolution1d contrib.layers.conv2d=convolution2d
        contrib.layers.conv3d=convolution3d contrib.layers.conv2d_transpose=convolution2d_transpose
        contrib.layers.conv3d_transpose=convolution3d_transpose contrib.layers.conv2d_in_plane=convolution2d_in_plane
        contrib.layers.separable_conv2d=separable_convolution2d
    """,
    "toolkit.client.scoped_layers.dense": """
        contrib.layers.fully_connected contrib.layers.relu contrib.layers.relu6 contrib.layers.elu contrib.layers.linear
        contrib.layers.bias_add contrib.layers.dropout contrib.layers.legacy_fully_connected
        contrib.layers.legacy_relu contrib.layers.legacy_linear
    """,
    "toolkit.client.scoped_layers.pooling": """
        contrib.layers.avg_pool2d contrib.layers.avg_pool3d contrib.layers.max_pool2d contrib.layers.max_pool3d
        contrib.slim.pool
    """,
    "toolkit.client.scoped_layers.normalization": """
        contrib.layers.batch_norm contrib.layers.layer_norm contrib.layers.instance_norm contrib.layers.group_norm
    """,
    "toolkit.client.scoped_layers.shapes": """
        contrib.layers.flatten contrib.layers.one_hot_encoding contrib.layers.dense_to_sparse
        contrib.layers.images_to_sequence contrib.layers.sequence_to_images contrib.layers.softmax
        contrib.layers.unit_norm contrib.layers.maxout contrib.layers.spatial_softmax contrib.layers.repeat
        contrib.layers.stack
    """,
    "toolkit.client.scoped_layers.regularizers": """
        contrib.layers.l1_regularizer contrib.layers.l2_regularizer contrib.layers.l1_l2_regularizer
        contrib.layers.sum_regularizer contrib.layers.apply_regularization
    """,
    "toolkit.client.scoped_layers.initializers": """
        contrib.layers.xavier_initializer contrib.layers.variance_scaling_initializer
    """,
    "toolkit.client.scoped_layers.embeddings": """
        contrib.layers.embed_sequence contrib.layers.bow_encoder contrib.layers.embedding_lookup_unique
        contrib.layers.safe_embedding_lookup_sparse
    """,
    "toolkit.client.scoped_layers.summaries": """
        contrib.layers.summarize_activation contrib.layers.summarize_activations contrib.layers.summarize_tensor
        contrib.layers.summarize_tensors contrib.layers.summarize_collection contrib.slim.summarize_variables
        contrib.slim.summarize_weights contrib.slim.summarize_biases
    """,
    "toolkit.client.scoped_layers.optimizing": "contrib.slim.adaptive_clipping_fn",
    "toolkit.tensorflow.families.contrib.layers": """
        contrib.layers.optimize_loss contrib.layers.OPTIMIZER_CLS_NAMES contrib.layers.OPTIMIZER_SUMMARIES
    """,
    "toolkit.client.scoped_layers.common": """
        contrib.layers.utils.collect_named_outputs contrib.layers.utils.append_tensor_alias
        contrib.layers.utils.gather_tensors_aliases contrib.layers.utils.get_tensor_aliases
        contrib.layers.utils.convert_collection_to_dict contrib.layers.utils.constant_value
        contrib.layers.utils.smart_cond contrib.layers.utils.get_variable_collections
        contrib.layers.utils.two_element_tuple contrib.layers.utils.n_positive_integers
    """,
}
