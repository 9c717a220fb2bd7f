"""tf.contrib.seq2seq: attention, helpers, decoders, beam search."""

_MADE = """
r = np.random.RandomState(6)
s2s = tf.contrib.seq2seq
memory, query = tf.constant(r.randn(3, 5, 4).astype('f')), tf.constant(r.randn(3, 4).astype('f'))
lengths = tf.constant([5, 2, 3])
before = tf.nn.softmax(tf.constant(r.randn(3, 5).astype('f')))
table = tf.constant(r.randn(7, 4).astype('f'))
given = tf.constant(r.randn(3, 6, 4).astype('f'))
cell = tf.nn.rnn_cell.GRUCell(4)
layer = tf.layers.Dense(7)
"""
#: a cell with attention, `wrapped`, over one or two mechanisms
_WRAPPED = """
mechanism = s2s.BahdanauAttention(4, memory, lengths)
wrapped = s2s.AttentionWrapper(cell, mechanism, 4, alignment_history=True)
"""
_TWO = """
mechanisms = [s2s.LuongAttention(4, memory, lengths), s2s.BahdanauAttention(3, memory, normalize=True)]
wrapped = s2s.AttentionWrapper(tf.nn.rnn_cell.LSTMCell(4), mechanisms, [3, 2], alignment_history=True, output_attention=False)
"""
_STEP = """
state = wrapped.zero_state(3, tf.float32)
for _ in range(3):
    output, state = wrapped(query, state)
histories = state.alignment_history if isinstance(state.alignment_history, tuple) else (state.alignment_history,)
result = [output, state._replace(alignment_history=()), [h.stack() for h in histories if hasattr(h, 'stack')]]
"""
_SIZES = "result += [wrapped.output_size, state.cell_state]\n"


def _decoded(helper: str, options: str = "", layer: str = ", output_layer=layer") -> str:
    return (
        f"helper = s2s.{helper}\n"
        f"decoder = s2s.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32){layer})\n"
        f"result = s2s.dynamic_decode(decoder{options})"
    )


def _beams(
    options: str = "", decode: str = "maximum_iterations=6", states: str = "cell.zero_state(6, tf.float32)"
) -> str:
    return (
        f"decoder = s2s.BeamSearchDecoder(cell, table, [1, 2, 3], 0, {states}, 2, layer{options})\n"
        f"outputs, state, n = s2s.dynamic_decode(decoder, {decode})\n"
        "result = [outputs, state.log_probs, state.lengths, state.finished, n]"
    )


_ATTENDING = """
tiled, known = s2s.tile_batch(memory, 2), s2s.tile_batch(lengths, 2)
plain, cell = cell, s2s.AttentionWrapper(cell, s2s.LuongAttention(4, tiled, known), 4, alignment_history=%s)
"""
#: steps that draw one after the other, or nobody knows which draws which
_IN_ORDER = ", parallel_iterations=1"
_PREVIOUS = "p = tf.sigmoid(tf.constant(r.randn(3, 5).astype('f')))\n"
_HALF = "[1, 4, 6]"

VALUES: dict[str, list[str]] = {
    "contrib.seq2seq.hardmax": [
        _MADE + "result = s2s.hardmax(query)",
        _MADE + "result = s2s.hardmax(tf.placeholder_with_default(query, [None, None]), name='most')",
    ],
    "contrib.seq2seq.safe_cumprod": [
        _MADE + "result = s2s.safe_cumprod(before, axis=1)",
        _MADE + "result = s2s.safe_cumprod(tf.nn.relu(query), 0, exclusive=True)",
    ],
    "contrib.seq2seq.monotonic_attention": [
        _MADE + _PREVIOUS + f"result = s2s.monotonic_attention({chances}, before, '{mode}')"
        for chances, mode in (("p", "recursive"), ("p", "parallel"), ("tf.round(p)", "hard"))
    ],
    "contrib.seq2seq.BahdanauAttention": [
        _MADE + f"m = s2s.BahdanauAttention(6, memory{options})\nresult = [m(query, 0), m.keys, m.values, m.batch_size, "
        "m.alignments_size, m.state_size, m.initial_state(3, tf.float32)]"
        for options in ("", ", lengths, normalize=True", ", lengths, False, s2s.hardmax, -9.0, tf.float32")
    ],
    "contrib.seq2seq.LuongAttention": [
        _MADE + f"m = s2s.LuongAttention(4, memory{options})\nresult = [m(query, 0), m.keys, m.values]"
        for options in (
            "", ", lengths, scale=True",
            ", lengths, probability_fn=tf.sigmoid, score_mask_value=-9.0, custom_key_value_fn=lambda k, v: (k + v, k)",
        )
    ],
    "contrib.seq2seq.BahdanauMonotonicAttention": [
        _MADE + f"m = s2s.BahdanauMonotonicAttention(6, memory{options})\n"
        "result = [m(query, m.initial_state(3, tf.float32)), m(query, before)]"
        for options in ("", ", lengths, normalize=True, mode='recursive'", ", lengths, mode='hard', score_bias_init=-1.0",
                        ", lengths, sigmoid_noise=0.5, sigmoid_noise_seed=7")
    ],
    "contrib.seq2seq.LuongMonotonicAttention": [
        _MADE + f"m = s2s.LuongMonotonicAttention(4, memory{options})\n"
        "result = [m(query, m.initial_state(3, tf.float32)), m(query, before)]"
        for options in ("", ", lengths, scale=True, mode='recursive'", ", lengths, mode='hard', score_bias_init=-1.0")
    ],
    "contrib.seq2seq.AttentionWrapper": [
        _MADE + _WRAPPED + _STEP + _SIZES,
        _MADE + _TWO + _STEP + _SIZES,
        _MADE + "wrapped = s2s.AttentionWrapper(cell, s2s.LuongAttention(4, memory), cell_input_fn=lambda x, a: x + a)\n"
        + _STEP,
        _MADE + "wrapped = s2s.AttentionWrapper(cell, s2s.LuongMonotonicAttention(4, memory, mode='hard'), "
        "attention_layer=tf.layers.Dense(3, name='mine'), initial_cell_state=query)\n" + _STEP,
        _MADE + "wrapped = s2s.AttentionWrapper(cell, s2s.LuongAttention(4, memory), name='mine', attention_fn="
        "lambda m, out, state, layer: (out * 2, m(out, state)[0], state))\n" + _STEP,
        _MADE + _WRAPPED + "outputs, state = tf.nn.dynamic_rnn(wrapped, given, [6, 3, 4], dtype=tf.float32)\n"
        "result = [outputs, state.attention, state.cell_state, state.time, state.alignment_history.stack()]",
    ],
    "contrib.seq2seq.AttentionWrapperState": [
        _MADE + _WRAPPED + "s = wrapped.zero_state(3, tf.float32).clone(cell_state=query)\nresult = s._replace(alignment_history=())",
        _MADE + _TWO + "s = wrapped.zero_state(3, tf.float32)\ns = s.clone(attention=s.attention + 1)\n"
        "result = s._replace(alignment_history=())",
    ],
    "contrib.seq2seq.TrainingHelper": [
        _MADE + _decoded(f"TrainingHelper(given, {_HALF})"),
        _MADE + _decoded(f"TrainingHelper(tf.transpose(given, [1, 0, 2]), {_HALF}, time_major=True)",
                         ", output_time_major=True, impute_finished=True, scope='mine'", ""),
        _MADE + _decoded("TrainingHelper(given, [0, 0, 0])", ", maximum_iterations=2"),
    ],
    "contrib.seq2seq.GreedyEmbeddingHelper": [
        _MADE + _decoded("GreedyEmbeddingHelper(table, [1, 2, 3], 0)", ", maximum_iterations=5"),
        _MADE + _decoded("GreedyEmbeddingHelper(lambda i: tf.gather(table, i), tf.constant([6, 6, 5]), 4)",
                         ", maximum_iterations=tf.constant(4), impute_finished=True"),
    ],
    "contrib.seq2seq.SampleEmbeddingHelper": [
        _MADE + _decoded("SampleEmbeddingHelper(table, [1, 2, 3], 0, seed=3)", _IN_ORDER + ", maximum_iterations=8"),
        _MADE + _decoded("SampleEmbeddingHelper(table, [1, 2, 3], 0, 0.5, seed=3)", _IN_ORDER + ", maximum_iterations=8"),
    ],
    "contrib.seq2seq.ScheduledEmbeddingTrainingHelper": [
        _MADE + _decoded(f"ScheduledEmbeddingTrainingHelper(given, {_HALF}, table, {p}, seed=1, scheduling_seed=2)", _IN_ORDER)
        for p in ("0.5", "0.0", "1.0")
    ],
    "contrib.seq2seq.ScheduledOutputTrainingHelper": [
        _MADE + _decoded(f"ScheduledOutputTrainingHelper(given, {_HALF}, 0.5, seed=1{more})", _IN_ORDER, layer)
        for more, layer in (
            ("", ""), (", next_inputs_fn=lambda x: x[:, :4]", ", output_layer=layer"),
            (", auxiliary_inputs=given", ""), (", auxiliary_inputs=given, next_inputs_fn=lambda x: x[:, :4]", ", output_layer=layer"),
        )
    ],
    "contrib.seq2seq.InferenceHelper": [
        _MADE + _decoded("InferenceHelper(lambda x: x, [4], tf.float32, query, lambda x: x[:, 0] > 0.2)",
                         ", maximum_iterations=4", ""),
        _MADE + _decoded("InferenceHelper(lambda x: tf.argmax(x, -1, output_type=tf.int32), [], tf.int32, query, "
                         "lambda x: tf.equal(x, 3), lambda x: tf.gather(table, x))", ", maximum_iterations=4"),
    ],
    "contrib.seq2seq.CustomHelper": [
        _MADE + "first = lambda: (tf.constant([False, True, False]), query)\n"
        "take = lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32)\n"
        "go_on = lambda time, outputs, state, sample_ids: (sample_ids > time, outputs[:, :4], state)\n"
        + _decoded(f"CustomHelper(first, take, go_on{more})", ", maximum_iterations=4")
        for more in ("", ", [], tf.int32")
    ],
    "contrib.seq2seq.dynamic_decode": [
        _MADE + _WRAPPED + "helper = s2s.TrainingHelper(given, [1, 4, 6])\n"
        "decoder = s2s.BasicDecoder(wrapped, helper, wrapped.zero_state(3, tf.float32), layer)\n"
        f"out, state, n = s2s.dynamic_decode(decoder{options})\nresult = [out, state.attention, state.cell_state, n, "
        "state.alignment_history.stack(), decoder.batch_size]" for options in ("", ", impute_finished=True", ", True, swap_memory=True")
    ],
    "contrib.seq2seq.tile_batch": [
        _MADE + "result = s2s.tile_batch((memory, lengths), 3)", _MADE + "result = s2s.tile_batch(query, multiplier=2, name='t')",
    ],
    "contrib.seq2seq.gather_tree": [
        "ids, parents = np.random.RandomState(2).randint(0, 9, (6, 3, 4)).astype('i'), np.random.RandomState(3).randint(0, 4, (6, 3, 4)).astype('i')\n"
        f"result = tf.contrib.seq2seq.gather_tree(ids, parents, {n}, {end})" for n, end in (("[6, 3, 0]", 10), ("[6, 6, 2]", 4))
    ],
    "contrib.seq2seq.BeamSearchDecoder": [
        _MADE + _beams(),
        _MADE + _beams(", length_penalty_weight=0.6", "output_time_major=True, maximum_iterations=5"),
        _MADE + _ATTENDING % False + _beams(", coverage_penalty_weight=0.3"),
        _MADE + _ATTENDING % True + _beams()
        + "\nresult += [hasattr(state.cell_state.alignment_history, 'stack'), state.cell_state.attention]",
        _MADE + "memory = tf.placeholder_with_default(memory, [None, None, 4])\n" + _ATTENDING % True + _beams()
        + "\nresult += [state.cell_state.alignment_history, state.cell_state.attention]",
        _MADE + _ATTENDING % True + _beams(", reorder_tensor_arrays=False")
        + "\nresult += [state.cell_state.alignment_history.stack(), decoder.tracks_own_finished, decoder.batch_size]",
    ],
}  # fmt: skip
