"""Models that are served inputs of many sizes: sentences of any length, pictures of any size, batches of any number.

Each draw has sizes of its own, so that nearly every step is the first of its shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Workload, tensorflow
from tests.bench.workloads.training import _dense, _export, _variable
from tests.models import builder
from tests.network_models import _freeze

WORDS, EMBEDDING, UNITS, CLASSES = 5000, 128, 128, 10
LONGEST = 60  # words of a sentence


def _weights(seed: int) -> Callable[..., Any]:
    """Draws constants of a shape, by default such that sums keep their size."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(seed)

    def weight(*shape: int, scale: float | None = None) -> Any:
        scale = shape[0] ** -0.5 if scale is None else scale
        return tf.constant(random.standard_normal(shape, np.float32) * np.float32(scale))

    return weight


@builder(_freeze, _weights)
def translator(folder: Path) -> dict[str, Any]:
    """A GRU encoder and an attentive decoder that takes the best word each time, in loops of TensorFlow 1, frozen.

    Inputs "words" int32[batch, time] and "lengths" int32[batch]; output "scores" float32[batch, time, WORDS].
    """
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_control_flow_v2()

    def translate(words: Any, lengths: Any) -> dict[str, Any]:
        weight = _weights(31)
        table = weight(WORDS, EMBEDDING, scale=1.0)
        encoder = [weight(EMBEDDING + UNITS, 2 * UNITS), weight(EMBEDDING + UNITS, UNITS)]
        decoder = [weight(EMBEDDING + 2 * UNITS, 2 * UNITS), weight(EMBEDDING + 2 * UNITS, UNITS)]
        query, key, mix, out = weight(UNITS, UNITS), weight(UNITS, UNITS), weight(UNITS), weight(2 * UNITS, WORDS)
        batch, time = tf.shape(words)[0], tf.shape(words)[1]

        def cell(weights: list[Any], x: Any, state: Any) -> Any:
            reset, update = tf.split(tf.sigmoid(tf.concat([x, state], 1) @ weights[0]), 2, 1)
            candidate = tf.tanh(tf.concat([x, reset * state], 1) @ weights[1])
            return update * state + (1.0 - update) * candidate

        embedded = tf.transpose(tf.gather(table, words), [1, 0, 2])
        sequence = tf.TensorArray(tf.float32, time, element_shape=[None, EMBEDDING]).unstack(embedded)
        steps = tf.TensorArray(tf.float32, time, element_shape=[None, UNITS])
        zero = tf.zeros([batch, UNITS])

        def read(at: Any, state: Any, steps: Any) -> Any:
            state = tf.where((at < lengths)[:, None], cell(encoder, sequence.read(at), state), state)
            return at + 1, state, steps.write(at, state)

        _, state, steps = v1.while_loop(lambda at, *_: at < time, read, [0, zero, steps], name="encoder")
        memory = tf.transpose(steps.stack(), [1, 0, 2])
        keys = tf.tensordot(memory, key, 1)
        mask = tf.where(tf.sequence_mask(lengths, time), 0.0, -1e9)
        scores = tf.TensorArray(tf.float32, time, element_shape=[None, WORDS])

        def write(at: Any, token: Any, state: Any, scores: Any) -> Any:
            attention = tf.tensordot(tf.tanh(keys + (state @ query)[:, None]), mix, 1) + mask
            context = tf.reduce_sum(tf.nn.softmax(attention)[..., None] * memory, 1)
            state = cell(decoder, tf.concat([tf.gather(table, token), context], 1), state)
            logits = tf.concat([state, context], 1) @ out
            return at + 1, tf.argmax(logits, 1, tf.int32), state, scores.write(at, logits)

        first = tf.zeros([batch], tf.int32)
        _, _, _, scores = v1.while_loop(lambda at, *_: at < time, write, [0, first, state, scores], name="decoder")
        return {"scores": tf.transpose(scores.stack(), [1, 0, 2])}

    random = np.random.default_rng(32)
    specs = [tf.TensorSpec([None, None], tf.int32, name="words"), tf.TensorSpec([None], tf.int32, name="lengths")]
    inputs = {"words": random.integers(0, WORDS, (2, 7)).astype(np.int32), "lengths": np.array([7, 4], np.int32)}
    return _freeze(folder, translate, specs, inputs, True)


@builder(_freeze, _weights)
def sentence_encoder(folder: Path) -> dict[str, Any]:
    """A transformer encoder of 4 layers for sentences of any length, frozen; padding is masked.

    Input "tokens" int32[batch, time], 0 is padding; output "hidden" float32[batch, time, 256].
    """
    import numpy as np
    import tensorflow as tf

    layers, width, heads = 4, 256, 4

    def encode(tokens: Any) -> dict[str, Any]:
        weight = _weights(33)
        batch, time = tf.shape(tokens)[0], tf.shape(tokens)[1]

        def dense(x: Any, out: int) -> Any:
            return tf.nn.bias_add(x @ weight(x.shape[-1], out), weight(out, scale=0.1))

        def norm(x: Any) -> Any:
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            return tf.nn.batch_normalization(
                x, mean, variance, weight(width, scale=0.1), 1 + weight(width, scale=0.1), 1e-6
            )

        def attention(x: Any, mask: Any) -> Any:
            def split(y: Any) -> Any:
                return tf.transpose(tf.reshape(y, [batch, time, heads, width // heads]), [0, 2, 1, 3])

            query, key, value = (split(dense(x, width)) for _ in range(3))
            shares = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * (width // heads) ** -0.5 + mask)
            return dense(tf.reshape(tf.transpose(shares @ value, [0, 2, 1, 3]), [-1, width]), width)

        mask = tf.cast(tokens == 0, tf.float32)[:, None, None] * -1e9
        places = tf.gather(weight(256, width, scale=0.3), tf.range(time))
        x = norm(tf.reshape(tf.gather(weight(WORDS, width, scale=1.0), tokens) + places, [-1, width]))
        for _ in range(layers):
            x = norm(x + attention(x, mask))
            inner = dense(x, 4 * width)
            x = norm(x + dense(inner * (0.5 * (1.0 + tf.math.erf(inner * 2**-0.5))), width))
        return {"hidden": tf.reshape(x, [batch, time, width])}

    spec = tf.TensorSpec([None, None], tf.int32, name="tokens")
    tokens = np.random.default_rng(34).integers(1, WORDS, (2, 9)).astype(np.int32)
    return _freeze(folder, encode, [spec], {"tokens": tokens}, True)


@builder(_freeze, _weights)
def sentence_classifier(folder: Path) -> dict[str, Any]:
    """Three widths of convolutions over embedded words, the largest of each over time, a dense layer; frozen."""
    import numpy as np
    import tensorflow as tf

    filters = 100

    def classify(tokens: Any) -> dict[str, Any]:
        weight = _weights(35)
        embedded = tf.gather(weight(WORDS, EMBEDDING, scale=1.0), tokens)[..., None]
        found: list[Any] = []
        for reach in (3, 4, 5):
            kernel = weight(reach, EMBEDDING, 1, filters, scale=(reach * EMBEDDING) ** -0.5)
            maps = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(embedded, kernel, 1, "VALID"), weight(filters, scale=0.1)))
            found.append(tf.reduce_max(maps, [1, 2]))
        joined = tf.concat(found, 1)
        return {"scores": tf.nn.softmax(joined @ weight(3 * filters, CLASSES))}

    spec = tf.TensorSpec([None, None], tf.int32, name="tokens")
    tokens = np.random.default_rng(36).integers(0, WORDS, (2, 9)).astype(np.int32)
    return _freeze(folder, classify, [spec], {"tokens": tokens}, True)


@builder(_freeze)
def pictures(folder: Path) -> dict[str, Any]:
    """MobileNetV2 for pictures of any size, frozen: input "image" float32[batch, side, side, 3]."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(11)
    network = keras.applications.MobileNetV2(
        weights=None, input_shape=(None, None, 3), include_top=False, pooling="avg"
    )
    random = np.random.default_rng(37)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0  # one pass in training mode sets the statistics to the batch's
    network(random.standard_normal((8, 96, 96, 3), np.float32), training=True)
    image = random.standard_normal((2, 96, 96, 3), np.float32)
    spec = tf.TensorSpec([None, None, None, 3], tf.float32, name="image")
    return _freeze(folder, lambda x: {"features": network(x, training=False)}, [spec], {"image": image}, True)


@builder(_freeze)
def tagger(folder: Path, form: str) -> dict[str, Any]:
    """Keras's LSTM in both directions over sentences of any length, a tag for each word, frozen; "lowered" or not."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(12)
    layers = keras.layers
    tokens = keras.Input((None,), dtype="int32")
    hidden = layers.Embedding(WORDS, EMBEDDING)(tokens)
    hidden = layers.Bidirectional(layers.LSTM(UNITS // 2, return_sequences=True))(hidden)
    network = keras.Model(tokens, layers.Dense(CLASSES, activation="softmax")(hidden))
    batch = np.random.default_rng(38).integers(0, WORDS, (2, 9)).astype(np.int32)
    spec = tf.TensorSpec([None, None], tf.int32, name="tokens")
    return _freeze(folder, lambda x: {"tags": network(x, training=False)}, [spec], {"tokens": batch}, form == "lowered")


@builder(_variable, _dense, _export)
def learner(folder: Path) -> dict[str, Any]:
    """An LSTM over sequences of any length in a loop of TensorFlow 1, and its gradient; SGD, resource variables."""
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, None, 32], name="x")
        y = v1.placeholder(tf.int64, [None], name="y")
        time = tf.shape(x)[1]
        kernel = _variable("cell/kernel", 32 + UNITS, 4 * UNITS, scale=3 * (32 + UNITS) ** -0.5)
        bias = _variable("cell/bias", 4 * UNITS)
        sequence = tf.TensorArray(tf.float32, time, element_shape=[None, 32]).unstack(tf.transpose(x, [1, 0, 2]))
        zero = tf.zeros([tf.shape(x)[0], UNITS])

        def step(at: Any, cell: Any, state: Any) -> Any:
            enter, candidate, forget, leave = tf.split(tf.concat([sequence.read(at), state], 1) @ kernel + bias, 4, 1)
            cell = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(candidate)
            return at + 1, cell, tf.sigmoid(leave) * tf.tanh(cell)

        _, _, state = v1.while_loop(lambda at, *_: at < time, step, [0, zero, zero], name="rnn")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=_dense("output", state, CLASSES))
        loss = tf.reduce_mean(losses, name="loss")
        return _export(folder, loss, v1.train.GradientDescentOptimizer(0.05), {"x": x, "y": y})


@builder(_freeze, _weights)
def perceptrons(folder: Path) -> dict[str, Any]:
    """Four dense layers for batches of any number, frozen."""
    import numpy as np
    import tensorflow as tf

    def classify(x: Any) -> dict[str, Any]:
        weight = _weights(39)
        for out in (512, 256, 128):
            x = tf.nn.relu(tf.nn.bias_add(x @ weight(x.shape[-1], out), weight(out, scale=0.1)))
        return {"scores": tf.nn.softmax(x @ weight(128, CLASSES))}

    spec = tf.TensorSpec([None, 784], tf.float32, name="x")
    x = np.random.default_rng(40).standard_normal((2, 784), np.float32)
    return _freeze(folder, classify, [spec], {"x": x}, True)


def _sentences(random: Any, *, label: str, lengths: bool = False) -> dict[str, Any]:
    batch, time = (int(size) for size in random.integers((1, 5), (9, LONGEST + 1)))
    words = random.integers(1, WORDS, (batch, time)).astype("int32")
    if not lengths:
        return {label: words}
    own = random.integers(1, time + 1, batch).astype("int32")
    own[0] = time
    return {label: words, "lengths": own}


def _images_of_sizes(random: Any) -> dict[str, Any]:
    batch, side = int(random.integers(1, 5)), 32 * int(random.integers(2, 8))
    return {"image": random.standard_normal((batch, side, side, 3), dtype="float32")}


def _labelled_sequences(random: Any) -> dict[str, Any]:
    batch, time = (int(size) for size in random.integers((1, 5), (17, LONGEST + 1)))
    x = random.standard_normal((batch, time, 32), dtype="float32")
    return {"x": x, "y": random.integers(0, CLASSES, batch)}


def _rows(random: Any) -> dict[str, Any]:
    return {"x": random.standard_normal((int(random.integers(1, 129)), 784), dtype="float32")}


def workloads() -> list[Workload]:
    """Every model of the suite; a ratio to TensorFlow's first step of a shape is what is to be reached."""
    reach = tensorflow(1.0)
    sentences = partial(_sentences, label="tokens")
    found: list[tuple[str, Any, Any]] = [
        ("translator with attention", translator, partial(_sentences, label="words", lengths=True)),
        ("transformer encoder 4 x 256", sentence_encoder, sentences),
        ("text CNN", sentence_classifier, sentences),
        ("MobileNetV2", pictures, _images_of_sizes),
        ("LSTM tagger, while-loop", partial(tagger, "lowered"), sentences),
        ("LSTM tagger, functional", partial(tagger, "functional"), sentences),
        ("train LSTM", learner, _labelled_sequences),
        ("perceptron", perceptrons, _rows),
    ]
    return [Workload(f"{name}, any size", "shapes", model, feeds, reach) for name, model, feeds in found]
