"""tf.contrib.crf, tf.contrib.legacy_seq2seq, tf.contrib.seq2seq."""

HOMES: dict[str, str] = {
    "toolkit.client.crf": """
        contrib.crf.CrfForwardRnnCell contrib.crf.CrfDecodeForwardRnnCell contrib.crf.CrfDecodeBackwardRnnCell
        contrib.crf.crf_binary_score contrib.crf.crf_decode contrib.crf.crf_log_likelihood contrib.crf.crf_log_norm
        contrib.crf.crf_multitag_sequence_score contrib.crf.crf_sequence_score contrib.crf.crf_unary_score
        contrib.crf.viterbi_decode
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
}
