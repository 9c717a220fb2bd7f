"""tf.contrib.crf, legacy_seq2seq and seq2seq."""

_CRF = """
r = np.random.RandomState(3)
x, t = r.randn(4, 5, 3).astype('f'), r.randn(3, 3).astype('f')
tags, n = r.randint(0, 3, (4, 5)), np.array([5, 1, 3, %d])
x, t, tags, n = tf.constant(x), tf.constant(t), tf.constant(tags, tf.int32), tf.constant(n, tf.int32)
"""
_STEPS = """
r = np.random.RandomState(4)
steps = [tf.constant(r.randn(3, 4).astype('f')) for _ in range(4)]
state = tf.constant(r.randn(3, 5).astype('f'))
symbols = [tf.constant(r.randint(0, 6, 3), tf.int32) for _ in range(4)]
memory = tf.constant(r.randn(3, 7, 6).astype('f'))
cell = tf.nn.rnn_cell.GRUCell(5)
legacy = tf.contrib.legacy_seq2seq
"""
_LOSS = """
r = np.random.RandomState(5)
logits, targets = tf.constant(r.randn(3, 4, 6).astype('f')), tf.constant(r.randint(0, 6, (3, 4)))
weights = tf.constant((r.rand(3, 4) > %s).astype('f'))
"""


def _lines(before: str, *ends: str) -> list[str]:
    return [before + end for end in ends]


VALUES: dict[str, list[str]] = {
    f"contrib.crf.{name}": [_CRF % last + f"result = tf.contrib.crf.{call}" for last in (0, 4)]
    for name, call in {
        "crf_unary_score": "crf_unary_score(tags, n, x)",
        "crf_binary_score": "crf_binary_score(tags, n, t)",
        "crf_sequence_score": "crf_sequence_score(x, tags, n, t)",
        "crf_multitag_sequence_score": "crf_multitag_sequence_score(x, tf.one_hot(tags, 3) + tf.one_hot(tags * 0, 3) > 0, n, t)",
        "crf_log_norm": "crf_log_norm(x, n, t)",
        "crf_log_likelihood": "crf_log_likelihood(x, tags, n)",
        "viterbi_decode": "viterbi_decode(np.random.RandomState(1).randn(6, 4), np.random.RandomState(2).randn(4, 4))",
    }.items()
}
VALUES |= {
    "contrib.crf.crf_decode": [_CRF % last + "result = tf.contrib.crf.crf_decode(x, t, n)" for last in (2, 4)],
    "contrib.legacy_seq2seq.rnn_decoder": _lines(
        _STEPS,
        "result = legacy.rnn_decoder(steps, state, cell)",
        "result = legacy.rnn_decoder(steps, state, cell, lambda last, i: last[:, :4] * float(i), scope='mine')",
    ),
    "contrib.legacy_seq2seq.basic_rnn_seq2seq": _lines(
        _STEPS,
        "result = legacy.basic_rnn_seq2seq(steps, steps[:2], cell)",
        "result = legacy.basic_rnn_seq2seq(steps[:1], steps, tf.nn.rnn_cell.BasicLSTMCell(5), scope='mine')",
    ),
    "contrib.legacy_seq2seq.tied_rnn_seq2seq": _lines(
        _STEPS,
        "result = legacy.tied_rnn_seq2seq(steps, steps[:2], cell)",
        "result = legacy.tied_rnn_seq2seq(steps, steps, cell, lambda last, i: last[:, :4])",
    ),
    "contrib.legacy_seq2seq.embedding_rnn_decoder": _lines(
        _STEPS,
        "result = legacy.embedding_rnn_decoder(symbols, state, cell, 6, 4)",
        "result = legacy.embedding_rnn_decoder(symbols, state, cell, 6, 4, feed_previous=True)",
        "p = (tf.get_variable('w', [5, 6]), tf.get_variable('b', [6]))\n"
        "result = legacy.embedding_rnn_decoder(symbols, state, cell, 6, 4, p, True, False)",
    ),
    "contrib.legacy_seq2seq.attention_decoder": _lines(
        _STEPS,
        "result = legacy.attention_decoder(steps, state, memory, cell)",
        "result = legacy.attention_decoder(steps, state, memory, cell, 3, 2, initial_state_attention=True)",
    ),
    "contrib.legacy_seq2seq.sequence_loss": _lines(
        _LOSS % 0.4,
        "result = tf.contrib.legacy_seq2seq.sequence_loss(tf.unstack(logits, axis=1), tf.unstack(targets, axis=1), tf.unstack(weights, axis=1))",
        "result = tf.contrib.legacy_seq2seq.sequence_loss(tf.unstack(logits, axis=1), tf.unstack(targets, axis=1), tf.unstack(weights, axis=1), False, False)",
    ),
    "contrib.legacy_seq2seq.sequence_loss_by_example": _lines(
        _LOSS % 0.4,
        "result = tf.contrib.legacy_seq2seq.sequence_loss_by_example(tf.unstack(logits, axis=1), tf.unstack(targets, axis=1), tf.unstack(weights, axis=1))",
        "result = tf.contrib.legacy_seq2seq.sequence_loss_by_example(tf.unstack(logits, axis=1), tf.unstack(targets, axis=1), tf.unstack(weights, axis=1), False)",
    ),
    "contrib.seq2seq.sequence_loss": [
        _LOSS % bound + f"result = tf.contrib.seq2seq.sequence_loss(logits, targets, weights, {options})"
        for bound in (0.4, 2.0)
        for options in ("True, True", "True, False", "False, True", "False, False", "False, False, True, True",
                        "False, False, True, False", "False, False, False, True")
    ],
    "contrib.training.parse_values": [
        "result = tf.contrib.training.parse_values('a=1,b=[0.5,2],c=x', {'a': int, 'b': float, 'c': str})",
        "result = tf.contrib.training.parse_values('d=true,zz=1', {'d': bool}, ignore_unknown=True)",
    ],
}  # fmt: skip
