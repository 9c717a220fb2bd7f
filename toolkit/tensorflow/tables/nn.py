"""tf.nn and tf.random. What is one op needs no row."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.ops.nn": """
        nn.softmax nn.log_softmax nn.relu6 nn.leaky_relu nn.crelu nn.xw_plus_b nn.relu_layer nn.bias_add
        nn.softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2
        nn.sparse_softmax_cross_entropy_with_logits nn.sigmoid_cross_entropy_with_logits
        nn.weighted_cross_entropy_with_logits nn.dropout nn.conv2d nn.conv2d_transpose nn.max_pool nn.avg_pool
        nn.moments nn.batch_normalization nn.fused_batch_norm math.l2_normalize  math.top_k
        math.in_top_k nn.log_poisson_loss random.normal=random_normal random.truncated_normal=random_truncated_normal
        random.uniform=random_uniform random.shuffle=random_shuffle random.multinomial random.set_random_seed
        random.get_seed
    """,
    "toolkit.client.nn.contrib_nn": """
        contrib.nn.alpha_dropout contrib.nn.scaled_softplus contrib.nn.sampled_sparse_softmax_loss
        contrib.nn.rank_sampled_softmax_loss contrib.nn.nth_element
    """,
    "toolkit.tensorflow.families.contrib.flipped_losses": """
        contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits
        contrib.nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits
        contrib.nn.deprecated_flipped_sigmoid_cross_entropy_with_logits
    """,
    "toolkit.client.nn.embeddings": "nn.embedding_lookup nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse",
}
