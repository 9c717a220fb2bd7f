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
_SYMBOLS = _STEPS + "p = (tf.get_variable('w', [5, 6]), tf.get_variable('b', [6]))\n"
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
VALUES.update({
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
    **{
        f"contrib.legacy_seq2seq.{name}": [
            _SYMBOLS + f"result = legacy.{name}(symbols, symbols[:2], cell, {arguments}{more})"
            for more in (", feed_previous=True", ", feed_previous=tf.equal(tf.size(symbols[0]), 1)", extra)
        ]
        for name, arguments, extra in (
            ("embedding_rnn_seq2seq", "6, 6, 4", ", output_projection=p, feed_previous=True, dtype=tf.float32"),
            ("embedding_tied_rnn_seq2seq", "6, 4", ", num_decoder_symbols=3"),
            ("embedding_attention_seq2seq", "6, 7, 4", ", num_heads=2, initial_state_attention=True, scope='mine'"),
        )
    },
    "contrib.legacy_seq2seq.embedding_attention_decoder": [
        _SYMBOLS + f"result = legacy.embedding_attention_decoder(symbols, state, memory, cell, 6, 4{more})"
        for more in ("", ", output_projection=p, feed_previous=True", ", 2, 3, scope='mine'")
    ],
    "contrib.legacy_seq2seq.one2many_rnn_seq2seq": [
        _SYMBOLS + "cells = {'a': cell, 'b': tf.nn.rnn_cell.GRUCell(5)}\n"
        "result = legacy.one2many_rnn_seq2seq(symbols, {'a': symbols, 'b': symbols[:1]}, tf.nn.rnn_cell.GRUCell(5), cells, "
        f"6, {{'a': 6, 'b': 7}}, 4, {fed})"
        for fed in ("False", "True", "tf.equal(tf.size(symbols[0]), 2)")
    ],
    "contrib.legacy_seq2seq.model_with_buckets": [
        _SYMBOLS + "weights = [tf.constant([1.0, 0.5, 2.0])] * 3\n"
        "model = lambda a, b: legacy.embedding_rnn_seq2seq(a, b, tf.nn.rnn_cell.GRUCell(5), 6, 6, 4)\n"
        "result = legacy.model_with_buckets("
        f"symbols, symbols, symbols, weights, [(1, 2), (3, 3)], model{more})"
        for more in ("", ", per_example_loss=True, name='b'")
    ],
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
})  # fmt: skip
