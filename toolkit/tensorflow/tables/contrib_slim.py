"""tf.contrib.slim: networks, training, data."""

HOMES: dict[str, str] = {
    "toolkit.client.networks.plain": """
        contrib.slim.nets.alexnet.alexnet_v2 contrib.slim.nets.alexnet.alexnet_v2_arg_scope
        contrib.slim.nets.alexnet.trunc_normal contrib.slim.nets.overfeat.overfeat
        contrib.slim.nets.overfeat.overfeat_arg_scope contrib.slim.nets.overfeat.trunc_normal
        contrib.slim.nets.vgg.vgg_a contrib.slim.nets.vgg.vgg_d=vgg_16 contrib.slim.nets.vgg.vgg_e=vgg_19
        contrib.slim.nets.vgg.vgg_arg_scope
    """,
    "toolkit.client.networks.residual": """
        contrib.slim.nets.resnet_utils.Block contrib.slim.nets.resnet_utils.conv2d_same
        contrib.slim.nets.resnet_utils.resnet_arg_scope contrib.slim.nets.resnet_utils.stack_blocks_dense
        contrib.slim.nets.resnet_utils.subsample contrib.slim.nets.resnet_v1.bottleneck=bottleneck_v1
        contrib.slim.nets.resnet_v1.resnet_v1 contrib.slim.nets.resnet_v1.resnet_v1_50
        contrib.slim.nets.resnet_v1.resnet_v1_101 contrib.slim.nets.resnet_v1.resnet_v1_152
        contrib.slim.nets.resnet_v1.resnet_v1_200 contrib.slim.nets.resnet_v1.resnet_v1_block
        contrib.slim.nets.resnet_v2.bottleneck=bottleneck_v2 contrib.slim.nets.resnet_v2.resnet_v2
        contrib.slim.nets.resnet_v2.resnet_v2_50 contrib.slim.nets.resnet_v2.resnet_v2_101
        contrib.slim.nets.resnet_v2.resnet_v2_152 contrib.slim.nets.resnet_v2.resnet_v2_200
        contrib.slim.nets.resnet_v2.resnet_v2_block
    """,
    "toolkit.client.networks.inception": """
        contrib.slim.nets.inception.inception_v1 contrib.slim.nets.inception.inception_v1_arg_scope
        contrib.slim.nets.inception.inception_v1_base contrib.slim.nets.inception.inception_v2
        contrib.slim.nets.inception.inception_v2_arg_scope contrib.slim.nets.inception.inception_v2_base
        contrib.slim.nets.inception.inception_v3 contrib.slim.nets.inception.inception_v3_arg_scope
        contrib.slim.nets.inception.inception_v3_base
    """,
}
