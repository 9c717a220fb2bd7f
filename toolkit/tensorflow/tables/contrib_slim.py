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
    "toolkit.client.summaries.models": """
        contrib.slim.summaries.add_histogram_summary contrib.slim.summaries.add_image_summary
        contrib.slim.summaries.add_scalar_summary contrib.slim.summaries.add_zero_fraction_summary
        contrib.slim.summaries.add_histogram_summaries contrib.slim.summaries.add_image_summaries
        contrib.slim.summaries.add_scalar_summaries contrib.slim.summaries.add_zero_fraction_summaries
        contrib.slim.model_analyzer.tensor_description contrib.slim.model_analyzer.analyze_ops
        contrib.slim.model_analyzer.analyze_vars
    """,
    "toolkit.client.train.training_operation": """
        contrib.training.clip_gradient_norms contrib.training.clip_gradient_norms_fn
        contrib.training.multiply_gradients contrib.training.add_gradients_summaries
        contrib.training.create_train_op
    """,
    "toolkit.tensorflow.families.contrib.slim_learning": """
        contrib.slim.learning.clip_gradient_norms contrib.slim.learning.multiply_gradients
        contrib.slim.learning.add_gradients_summaries contrib.slim.learning.create_train_op
        contrib.slim.learning.train_step contrib.slim.learning.train
    """,
    "toolkit.tensorflow.families.contrib.slim_data": """
        contrib.slim.data_decoder.DataDecoder contrib.slim.dataset.Dataset
        contrib.slim.data_provider.DataProvider contrib.slim.dataset_data_provider.DatasetDataProvider
        contrib.slim.parallel_reader.ParallelReader
        contrib.slim.parallel_reader.get_data_files contrib.slim.parallel_reader.parallel_read
        contrib.slim.parallel_reader.single_pass_read contrib.slim.prefetch_queue.prefetch_queue
        contrib.slim.queues.NestedQueueRunnerError contrib.slim.queues.QueueRunners
        contrib.slim.tfexample_decoder.BackupHandler contrib.slim.tfexample_decoder.BoundingBox
        contrib.slim.tfexample_decoder.Image contrib.slim.tfexample_decoder.ItemHandler
        contrib.slim.tfexample_decoder.ItemHandlerCallback contrib.slim.tfexample_decoder.LookupTensor
        contrib.slim.tfexample_decoder.SparseTensor contrib.slim.tfexample_decoder.TFExampleDecoder
        contrib.slim.tfexample_decoder.Tensor
    """,
}
