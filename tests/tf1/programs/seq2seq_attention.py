"""An encoder and an attentive decoder: teacher forcing in training, then greedy decoding and beam search."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(15)
VOCAB, GO, EOS, UNITS, EMBED, BATCH, STEPS = 12, 1, 2, 8, 6, 8, 5
sources = rng.randint(3, VOCAB, [BATCH, STEPS])
source_lengths = rng.randint(2, STEPS + 1, BATCH)
targets = np.zeros([BATCH, STEPS + 1], np.int32)
for i, n in enumerate(source_lengths):
    targets[i, :n] = sources[i, :n][::-1]
    targets[i, n] = EOS
target_lengths = source_lengths + 1

tf.set_random_seed(15)
encoder_inputs = tf.placeholder(tf.int32, [None, None], name="encoder_inputs")
encoder_lengths = tf.placeholder(tf.int32, [None], name="encoder_lengths")
decoder_targets = tf.placeholder(tf.int32, [None, None], name="decoder_targets")
decoder_lengths = tf.placeholder(tf.int32, [None], name="decoder_lengths")
batch_size = tf.shape(encoder_inputs)[0]

embedding = tf.get_variable("embedding", [VOCAB, EMBED], initializer=tf.random_uniform_initializer(-1, 1))
encoder_cell = tf.nn.rnn_cell.LSTMCell(UNITS)
encoder_outputs, encoder_state = tf.nn.dynamic_rnn(
    encoder_cell, tf.nn.embedding_lookup(embedding, encoder_inputs), encoder_lengths, dtype=tf.float32
)
projection = tf.layers.Dense(VOCAB, use_bias=False, name="output_projection")


def attention_cell(memory, lengths, reuse=None):
    with tf.variable_scope("attention", reuse=reuse):
        mechanism = tf.contrib.seq2seq.BahdanauAttention(UNITS, memory, memory_sequence_length=lengths)
        cell = tf.nn.rnn_cell.LSTMCell(UNITS, reuse=reuse)
        return tf.contrib.seq2seq.AttentionWrapper(cell, mechanism, attention_layer_size=UNITS)


with tf.variable_scope("decoder"):
    cell = attention_cell(encoder_outputs, encoder_lengths)
    ending = tf.strided_slice(decoder_targets, [0, 0], [batch_size, -1], [1, 1])
    decoder_inputs = tf.concat([tf.fill([batch_size, 1], GO), ending], 1)
    helper = tf.contrib.seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, decoder_inputs), decoder_lengths)
    initial = cell.zero_state(batch_size, tf.float32).clone(cell_state=encoder_state)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, initial, output_layer=projection)
    outputs, final_state, final_lengths = tf.contrib.seq2seq.dynamic_decode(decoder, swap_memory=True)
logits = outputs.rnn_output
mask = tf.sequence_mask(decoder_lengths, tf.shape(logits)[1], dtype=tf.float32)
loss = tf.contrib.seq2seq.sequence_loss(logits, decoder_targets, mask)
params = tf.trainable_variables()
clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, params), 1.0)
train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(clipped, params))

with tf.variable_scope("decoder", reuse=True):
    cell = attention_cell(encoder_outputs, encoder_lengths, reuse=True)
    helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([batch_size], GO), EOS)
    initial = cell.zero_state(batch_size, tf.float32).clone(cell_state=encoder_state)
    greedy, _, _ = tf.contrib.seq2seq.dynamic_decode(
        tf.contrib.seq2seq.BasicDecoder(cell, helper, initial, projection), maximum_iterations=STEPS + 1
    )

with tf.variable_scope("decoder", reuse=True):
    width = 3
    tiled_outputs = tf.contrib.seq2seq.tile_batch(encoder_outputs, multiplier=width)
    tiled_state = tf.contrib.seq2seq.tile_batch(encoder_state, multiplier=width)
    cell = attention_cell(tiled_outputs, tf.contrib.seq2seq.tile_batch(encoder_lengths, width), reuse=True)
    initial = cell.zero_state(batch_size * width, tf.float32).clone(cell_state=tiled_state)
    beam = tf.contrib.seq2seq.BeamSearchDecoder(
        cell=cell, embedding=embedding, start_tokens=tf.fill([batch_size], GO), end_token=EOS, initial_state=initial,
        beam_width=width, output_layer=projection, length_penalty_weight=0.0,
    )
    beams, _, beam_lengths = tf.contrib.seq2seq.dynamic_decode(beam, maximum_iterations=STEPS + 1)

feed = {encoder_inputs: sources, encoder_lengths: source_lengths, decoder_targets: targets, decoder_lengths: target_lengths}
# the loss asks for as many targets as the longest decoded sequence
feed[decoder_targets] = targets[:, : target_lengths.max()]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(25):
        _, value = sess.run([train, loss], feed)
        print("%.5f" % value)
    ids, scores, found = sess.run([greedy.sample_id, greedy.rnn_output, beams.predicted_ids], feed)
    print("%.4f" % scores[:, 0].max())
    print(ids.shape[0])
    print(found.shape[2])
    for value in found[0, :2, 0]:
        print(value)
