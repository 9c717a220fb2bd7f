"""tf.contrib.tensorboard: what its projector is told; tf.contrib.summary."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.platform.projector": """
        contrib.tensorboard.plugins.projector.visualize_embeddings
        contrib.tensorboard.plugins.projector.DESCRIPTOR
    """,
    "toolkit.client.summaries.writers": """
        contrib.summary.SummaryWriter contrib.summary.create_file_writer contrib.summary.always_record_summaries
        contrib.summary.never_record_summaries contrib.summary.record_summaries_every_n_global_steps
        contrib.summary.should_record_summaries contrib.summary.summary_writer_initializer_op contrib.summary.generic
        contrib.summary.scalar contrib.summary.histogram contrib.summary.image contrib.summary.audio
        contrib.summary.graph=write_graph contrib.summary.import_event contrib.summary.flush
        summary.initialize summary.all_v2_summary_ops=all_summary_ops
    """,
    "toolkit.tensorflow.families.contrib.summaries": """
        contrib.summary.create_summary_file_writer contrib.summary.eval_dir
    """,
}
