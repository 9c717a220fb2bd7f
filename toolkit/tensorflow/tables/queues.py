"""Queues, readers, accumulators and input pipelines by queues."""

HOMES: dict[str, str] = {
    "toolkit.client.inputs.pipelines": """
        train.batch train.shuffle_batch train.input_producer train.string_input_producer train.range_input_producer
        train.slice_input_producer train.limit_epochs io.match_filenames_once=paths_once
    """,
    "toolkit.client.inputs.staging": "contrib.staging.StagingArea python.ops.data_flow_ops.StagingArea",
    "toolkit.tensorflow.families.data.queues": """
        queue.QueueBase queue.FIFOQueue queue.PaddingFIFOQueue queue.PriorityQueue queue.RandomShuffleQueue
        train.queue_runner.QueueRunner ReaderBase TFRecordReader WholeFileReader IdentityReader TextLineReader
        FixedLengthRecordReader ConditionalAccumulatorBase ConditionalAccumulator sparse.SparseConditionalAccumulator
        train.batch_join train.maybe_batch train.maybe_batch_join train.maybe_shuffle_batch
        train.maybe_shuffle_batch_join train.shuffle_batch_join
    """,
}
