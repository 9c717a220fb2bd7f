"""tf.contrib.crf, tf.contrib.legacy_seq2seq, tf.contrib.seq2seq."""

HOMES: dict[str, str] = {
    "toolkit.client.nn.crf": """
        contrib.crf.CrfForwardRnnCell contrib.crf.CrfDecodeForwardRnnCell contrib.crf.CrfDecodeBackwardRnnCell
        contrib.crf.crf_binary_score contrib.crf.crf_decode contrib.crf.crf_log_likelihood contrib.crf.crf_log_norm
        contrib.crf.crf_multitag_sequence_score contrib.crf.crf_sequence_score contrib.crf.crf_unary_score
        contrib.crf.viterbi_decode
    """,
    "toolkit.client.seq2seq.unrolled_models": """
        contrib.legacy_seq2seq.embedding_attention_decoder contrib.legacy_seq2seq.embedding_attention_seq2seq
        contrib.legacy_seq2seq.embedding_rnn_seq2seq contrib.legacy_seq2seq.embedding_tied_rnn_seq2seq
        contrib.legacy_seq2seq.model_with_buckets contrib.legacy_seq2seq.one2many_rnn_seq2seq
    """,
    "toolkit.client.seq2seq.unrolled": """
        contrib.legacy_seq2seq.rnn_decoder contrib.legacy_seq2seq.basic_rnn_seq2seq
        contrib.legacy_seq2seq.tied_rnn_seq2seq contrib.legacy_seq2seq.embedding_rnn_decoder
        contrib.legacy_seq2seq.attention_decoder
    """,
    "toolkit.client.seq2seq.loss": """
        contrib.seq2seq.sequence_loss contrib.legacy_seq2seq.sequence_loss=unrolled_sequence_loss
        contrib.legacy_seq2seq.sequence_loss_by_example
    """,
    "toolkit.client.seq2seq.attention": """
        contrib.seq2seq.AttentionMechanism contrib.seq2seq.BahdanauAttention contrib.seq2seq.LuongAttention
        contrib.seq2seq.hardmax
    """,
    "toolkit.client.seq2seq.monotonic": """
        contrib.seq2seq.BahdanauMonotonicAttention contrib.seq2seq.LuongMonotonicAttention
        contrib.seq2seq.monotonic_attention contrib.seq2seq.safe_cumprod
    """,
    "toolkit.client.seq2seq.wrapper": "contrib.seq2seq.AttentionWrapper contrib.seq2seq.AttentionWrapperState",
    "toolkit.client.seq2seq.decoder": """
        contrib.seq2seq.BasicDecoder contrib.seq2seq.BasicDecoderOutput contrib.seq2seq.Decoder
        contrib.seq2seq.dynamic_decode
    """,
    "toolkit.client.seq2seq.helpers": """
        contrib.seq2seq.CustomHelper contrib.seq2seq.GreedyEmbeddingHelper contrib.seq2seq.Helper
        contrib.seq2seq.InferenceHelper contrib.seq2seq.SampleEmbeddingHelper contrib.seq2seq.TrainingHelper
    """,
    "toolkit.client.seq2seq.scheduled": """
        contrib.seq2seq.ScheduledEmbeddingTrainingHelper contrib.seq2seq.ScheduledOutputTrainingHelper
    """,
    "toolkit.client.seq2seq.beam_step": """
        contrib.seq2seq.BeamSearchDecoderOutput contrib.seq2seq.BeamSearchDecoderState
    """,
    "toolkit.client.seq2seq.beam_search": """
        contrib.seq2seq.BeamSearchDecoder contrib.seq2seq.FinalBeamSearchDecoderOutput
    """,
    "toolkit.client.seq2seq.beams": "contrib.seq2seq.gather_tree contrib.seq2seq.tile_batch",
}
