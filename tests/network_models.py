"""Whole networks that TensorFlow writes: classifiers, recurrent, text, translation and detection models.

They use the cache of `tests.models`. Every builder leaves `inputs.npz` and `outputs.npz`: a batch of two and what
TensorFlow makes of it, under the labels of `info["inputs"]` and `info["outputs"]` (label to tensor name), or, for a
SavedModel, of its signature "serving_default".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.models import _images, builder

#: family to its networks, smallest first, and the smallest image it takes
FAMILIES: dict[str, tuple[int, list[str]]] = {
    "ConvNeXt": (32, ["ConvNeXtTiny", "ConvNeXtSmall", "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtXLarge"]),
    "DenseNet": (32, ["DenseNet121", "DenseNet169", "DenseNet201"]),
    "EfficientNet": (32, [f"EfficientNetB{n}" for n in range(8)]),
    "EfficientNetV2": (32, [f"EfficientNetV2{n}" for n in ("B0", "B1", "B2", "B3", "S", "M", "L")]),
    "InceptionResNetV2": (75, ["InceptionResNetV2"]),
    "InceptionV3": (75, ["InceptionV3"]),
    "MobileNet": (32, ["MobileNet"]),
    "MobileNetV2": (32, ["MobileNetV2"]),
    "MobileNetV3": (32, ["MobileNetV3Small", "MobileNetV3Large"]),
    "NASNet": (32, ["NASNetMobile", "NASNetLarge"]),
    "ResNet": (32, ["ResNet50", "ResNet101", "ResNet152"]),
    "ResNetV2": (32, ["ResNet50V2", "ResNet101V2", "ResNet152V2"]),
    "VGG": (32, ["VGG16", "VGG19"]),
    "Xception": (71, ["Xception"]),
}
#: these scale their input themselves
_RAW_PIXELS = ("EfficientNet", "MobileNetV3", "ConvNeXt")


def _save_case(folder: Path, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
    """Write the batch and the answer."""
    import numpy as np

    np.savez(folder / "inputs.npz", **{label: np.asarray(value) for label, value in inputs.items()})
    np.savez(folder / "outputs.npz", **{label: np.asarray(value) for label, value in outputs.items()})


def _freeze(folder: Path, function: Any, specs: list[Any], inputs: Mapping[str, Any], lower: bool) -> dict[str, Any]:
    """Freeze a tf.function of `specs` (with names, in the order of `inputs`) that returns tensors by label."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    concrete = tf.function(function).get_concrete_function(*specs)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    tf.io.write_graph(frozen.graph.as_graph_def(), str(folder), "frozen.pb", as_text=False)
    results = frozen(*[tf.constant(value) for value in inputs.values()])
    labels = sorted(concrete.structured_outputs)
    _save_case(folder, inputs, dict(zip(labels, results, strict=True)))
    names = [tensor.name for tensor in frozen.inputs]
    return {
        "main": "frozen.pb",
        "inputs": dict(zip(inputs, names, strict=True)),
        "outputs": {label: tensor.name for label, tensor in zip(labels, frozen.outputs, strict=True)},
    }


def _calibrate(network: Any, batch: Any) -> None:
    """Give batch norms random scales and the batch's statistics, and layer scales something to scale.

    Fresh ones would leave a deep random network with an output that hardly depends on its input.
    """
    import keras
    import numpy as np

    random = np.random.default_rng(11)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            # the last one of a residual block is weak, or 50 blocks of random weights blow rounding errors up
            low, high = (0.1, 0.4) if layer.name.endswith(("_3_bn", "_project_bn")) else (0.7, 1.3)
            if layer.gamma is not None:
                layer.gamma.assign(random.uniform(low, high, layer.gamma.shape))
            layer.beta.assign(random.uniform(-0.3, 0.3, layer.beta.shape))
            layer.momentum = 0.0  # one pass in training mode sets the moving statistics to the batch's
        elif isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0  # or the statistics would not be those of inference
        elif type(layer).__name__ == "LayerScale":
            layer.gamma.assign(random.uniform(0.2, 0.6, layer.gamma.shape))
    network(batch, training=True)


# -- keras.applications ----------------------------------------------------------------------------------


@builder(_images, _save_case, _freeze, _calibrate)
def application(folder: Path, name: str, side: str) -> dict[str, Any]:
    """A frozen network of keras.applications for images of side x side pixels; input "image", output "scores"."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(11)
    size = int(side)
    network = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3))
    batch = _images(32)[:, :size, :size]
    if not name.startswith(_RAW_PIXELS):
        batch = batch / 64 - 2
    last = [layer for layer in network.layers if hasattr(layer, "kernel")][-1]
    until_last = keras.Model(network.input, last.input)
    _calibrate(until_last, batch)
    features = np.asarray(until_last(batch, training=False))
    mean = features.mean(axis=0).reshape(-1)
    kernel = np.asarray(last.kernel)
    weights = kernel.reshape(-1, kernel.shape[-1])
    # Scores that vary by a fifth of themselves. An error of the logits is a relative error of the scores, and those
    # of TensorFlow's own float32 grow with the spread: at 0.5, EfficientNetB2's are 8e-4 from float64's.
    weights = weights * (0.2 / ((features.reshape(len(batch), -1) - mean) @ weights).std())
    last.kernel.assign(weights.reshape(kernel.shape))
    last.bias.assign(-mean @ weights)
    spec = tf.TensorSpec([None, size, size, 3], tf.float32, name="image")
    if name == "ConvNeXtXLarge":  # 350 million weights, which take TensorFlow 20 GB to freeze
        module = tf.Module()
        module.weights = [variable.value for variable in network.variables]
        module.serve = tf.function(lambda image: {"scores": network(image, training=False)}, input_signature=[spec])
        tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
        _save_case(folder, {"image": batch[:2]}, module.serve(tf.constant(batch[:2])))
        return {"main": "model"}
    return _freeze(folder, lambda x: {"scores": network(x, training=False)}, [spec], {"image": batch[:2]}, False)


# -- recurrent -------------------------------------------------------------------------------------------


@builder(_save_case, _freeze)
def recurrent(folder: Path, control_flow: str) -> dict[str, Any]:
    """Masked bidirectional LSTM and GRU layers, frozen; control_flow is "lowered" or "functional"."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    layers = keras.layers
    sequence = keras.Input((None, 6))
    hidden = layers.Masking()(sequence)
    hidden = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(hidden)
    hidden = layers.Bidirectional(layers.GRU(7, return_sequences=True), merge_mode="sum")(hidden)
    hidden = layers.GRU(9, return_sequences=True, reset_after=False, go_backwards=True)(hidden)
    hidden, state, cell = layers.LSTM(5, return_sequences=True, return_state=True)(hidden)
    last = layers.SimpleRNN(4)(hidden)
    network = keras.Model(sequence, {"last": last, "state": layers.Concatenate()([state, cell]), "steps": hidden})
    batch = np.random.default_rng(5).standard_normal((2, 11, 6)).astype(np.float32)
    batch[1, 7:] = 0  # masked
    spec = tf.TensorSpec([None, None, 6], tf.float32, name="sequence")
    return _freeze(folder, lambda x: network(x), [spec], {"sequence": batch}, control_flow == "lowered")


# -- convolutional ---------------------------------------------------------------------------------------


def _unet() -> Any:
    import keras
    import tensorflow as tf

    layers = keras.layers

    def block(x: Any, depth: int, dilation: int = 1) -> Any:
        for _ in range(2):
            x = layers.Conv2D(depth, 3, padding="same", use_bias=False, dilation_rate=dilation)(x)
            x = layers.LeakyReLU()(layers.BatchNormalization()(x))
        return x

    image = keras.Input((None, None, 3))
    first = block(image, 8)
    second = block(layers.MaxPooling2D()(first), 16)
    bottom = block(layers.AveragePooling2D(2)(second), 24, dilation=2)
    up = layers.Conv2DTranspose(16, 3, strides=2, padding="same")(bottom)
    up = block(layers.Concatenate()([up, second]), 16)
    up = layers.SeparableConv2D(8, 3, padding="same")(up)
    up = layers.Lambda(lambda t: tf.image.resize(t, 2 * tf.shape(t)[1:3]), output_shape=(None, None, 8))(up)
    up = block(layers.Concatenate()([up, first]), 8)
    return keras.Model(image, layers.Conv2D(4, 1)(up))


@builder(_images, _save_case, _freeze, _calibrate, _unet)
def unet(folder: Path) -> dict[str, Any]:
    """A segmentation U-Net for images of any size, frozen: transposed, dilated and separable convolutions."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(4)
    network = _unet()
    batch = _images(8)[:, :48, :64] / 64 - 2
    _calibrate(network, batch)

    def segment(image: Any) -> dict[str, Any]:
        logits = network(image, training=False)
        return {"probabilities": tf.nn.softmax(logits), "labels": tf.argmax(logits, axis=-1)}

    spec = tf.TensorSpec([None, None, None, 3], tf.float32, name="image")
    return _freeze(folder, segment, [spec], {"image": batch[:2]}, False)


@builder(_save_case, _freeze)
def text_cnn(folder: Path) -> dict[str, Any]:
    """A sentence classifier: parallel 1-D convolutions over embeddings, frozen."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(5)
    layers = keras.layers
    tokens = keras.Input((None,), dtype="int32")
    embedded = layers.Embedding(50, 12)(tokens)
    embedded = layers.Dropout(0.2)(layers.LayerNormalization()(embedded))
    pooled = [
        layers.GlobalMaxPooling1D()(layers.Conv1D(8, width, activation="gelu", padding=padding)(embedded))
        for width, padding in ((2, "valid"), (3, "same"), (5, "causal"))
    ]
    scores = layers.Dense(6, activation="softmax")(layers.Concatenate()(pooled))
    network = keras.Model(tokens, scores)
    batch = np.random.default_rng(6).integers(0, 50, (2, 17)).astype(np.int32)
    spec = tf.TensorSpec([None, None], tf.int32, name="tokens")
    return _freeze(folder, lambda x: {"scores": network(x, training=False)}, [spec], {"tokens": batch}, True)


@builder(_images, _save_case)
def detector(folder: Path) -> dict[str, Any]:
    """A single-shot detection head: anchors, box decoding, and non-maximum suppression three ways; a SavedModel."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(8)
    classes, size = 3, 96

    def weight(*shape: int) -> Any:
        return tf.Variable(random.normal(0, np.prod(shape[:-1]) ** -0.5, shape).astype(np.float32))

    class Detector(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernels = [weight(3, 3, 3, 16), weight(3, 3, 16, 24), weight(3, 3, 24, 24)]
            self.heads = [weight(1, 1, 24, 3 * (4 + classes)) for _ in range(2)]

        def anchors(self, feature: Any) -> Any:
            rows, columns = tf.shape(feature)[1], tf.shape(feature)[2]
            y = (tf.cast(tf.range(rows), tf.float32) + 0.5) / tf.cast(rows, tf.float32)
            x = (tf.cast(tf.range(columns), tf.float32) + 0.5) / tf.cast(columns, tf.float32)
            centers = tf.stack(tf.meshgrid(y, x, indexing="ij"), axis=-1)[:, :, None, :]
            sides = tf.constant([[0.2, 0.2], [0.15, 0.3], [0.3, 0.15]]) * (12.0 / tf.cast(rows, tf.float32))
            shape = tf.stack([rows, columns, 3, 2])
            return tf.reshape(tf.concat([tf.broadcast_to(centers, shape), tf.broadcast_to(sides, shape)], -1), [-1, 4])

        @tf.function(input_signature=[tf.TensorSpec([None, size, size, 3], tf.float32, name="image")])
        def detect(self, image: Any) -> dict[str, Any]:
            features, x = [], image / 64.0 - 2.0
            for kernel in self.kernels:
                x = tf.nn.relu6(tf.nn.conv2d(x, kernel, 2, "SAME") * 1.5)
                x = tf.nn.max_pool2d(x, 3, 1, "SAME") if kernel.shape[-1] == 16 else x
                features.append(x)
            boxes, scores = [], []
            for feature, head in zip(features[1:], self.heads, strict=True):
                raw = tf.reshape(tf.nn.conv2d(feature, head, 1, "SAME"), [tf.shape(image)[0], -1, 4 + classes])
                anchor = self.anchors(feature)
                center = anchor[:, :2] + 0.1 * raw[..., :2] * anchor[:, 2:]
                side = anchor[:, 2:] * tf.exp(0.2 * tf.clip_by_value(raw[..., 2:4], -4.0, 4.0))
                boxes.append(tf.concat([center - side / 2, center + side / 2], -1))
                scores.append(tf.sigmoid(2.0 * raw[..., 4:]))
            box, score = tf.concat(boxes, 1), tf.concat(scores, 1)
            kept = tf.image.combined_non_max_suppression(box[:, :, None], score, 6, 20, 0.5, 0.4)
            best = tf.reduce_max(score, -1)
            padded, valid = tf.image.non_max_suppression_padded(
                box, best, 15, 0.4, 0.5, pad_to_max_output_size=True, sorted_input=False, canonicalized_coordinates=True
            )

            def soft(pair: Any) -> Any:
                chosen, weight = tf.image.non_max_suppression_with_scores(
                    pair[0], pair[1], max_output_size=12, iou_threshold=1.0, score_threshold=0.1, soft_nms_sigma=0.5
                )
                room = [[0, 12 - tf.size(chosen)]]
                return tf.pad(tf.gather(pair[0], chosen), [*room, [0, 0]]), tf.pad(weight, room)

            soft_boxes, soft_scores = tf.map_fn(soft, (box, best), fn_output_signature=(tf.float32, tf.float32))
            return {
                "boxes": kept.nmsed_boxes, "scores": kept.nmsed_scores, "classes": kept.nmsed_classes,
                "count": kept.valid_detections, "padded": padded, "valid": valid,
                "soft_boxes": soft_boxes, "soft_scores": soft_scores,
            }  # fmt: skip

    module = Detector()
    tf.saved_model.save(module, str(folder / "model"), signatures=module.detect)
    batch = _images(2)
    _save_case(folder, {"image": batch}, module.detect(tf.constant(batch)))
    return {"main": "model"}


@builder(_images, _save_case)
def fused_batch_norm(folder: Path) -> dict[str, Any]:
    """All three generations of fused batch norm of TensorFlow 1, for inference, training and the gradient, frozen."""
    import numpy as np
    import tensorflow as tf

    v1, raw = tf.compat.v1, tf.raw_ops
    random = np.random.default_rng(9)
    outputs: dict[str, Any] = {}
    with v1.Graph().as_default() as graph:
        image = v1.placeholder(tf.float32, [None, 24, 24, 3], name="image")
        x = image / 64.0 - 2.0

        def variable(name: str, low: float, high: float, *shape: int) -> Any:
            value = random.uniform(low, high, shape).astype(np.float32)
            return v1.get_variable(name, initializer=value, use_resource=False)

        for version in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
            norm = getattr(raw, version)
            with v1.variable_scope(version):
                kernel = variable("kernel", -0.4, 0.4, 3, 3, x.shape[-1], 8)
                scale, offset = variable("scale", 0.5, 1.5, 8), variable("offset", -0.5, 0.5, 8)
                mean, variance = variable("mean", -0.5, 0.5, 8), variable("variance", 0.5, 2.0, 8)
                hidden = tf.nn.conv2d(x, kernel, 1, "SAME")
                fixed = norm(x=hidden, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=1e-3,
                             is_training=False)  # fmt: skip
                batch = norm(x=hidden, scale=scale, offset=offset, mean=[], variance=[], epsilon=1e-3,
                             is_training=True)  # fmt: skip
                running = v1.nn.fused_batch_norm(hidden, scale, offset, mean, variance, epsilon=1e-3,
                                                 exponential_avg_factor=0.3)  # fmt: skip
                gradients = v1.gradients(tf.reduce_sum(batch.y * tf.cos(batch.y)), [x, kernel, scale, offset])
                x = tf.nn.relu(fixed.y)
            outputs |= {f"{version}.fixed": fixed.y, f"{version}.batch": batch.y, f"{version}.mean": batch.batch_mean,
                        f"{version}.variance": batch.batch_variance, f"{version}.running": running[2]}  # fmt: skip
            outputs |= {
                f"{version}.{name}_gradient": value
                for name, value in zip(("x", "kernel", "scale", "offset"), gradients, strict=True)
            }
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feed = _images(2)[:, :24, :24]
            values = session.run(outputs, {image: feed})
            frozen = v1.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), [tensor.op.name for tensor in outputs.values()]
            )
    tf.io.write_graph(frozen, str(folder), "frozen.pb", as_text=False)
    _save_case(folder, {"image": feed}, values)
    names = {label: tensor.name for label, tensor in outputs.items()}
    return {"main": "frozen.pb", "inputs": {"image": "image:0"}, "outputs": names}


# -- text ------------------------------------------------------------------------------------------------


@builder(_save_case)
def transformer(folder: Path) -> dict[str, Any]:
    """A transformer encoder and decoder with padding and causal masks, as Keras exports it."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(6)
    layers = keras.layers
    width, words = 16, 40

    def embed(tokens: Any, name: str) -> Any:
        positions = layers.Lambda(lambda t: tf.range(tf.shape(t)[1])[None], output_shape=(None,))(tokens)
        return layers.Add()([
            layers.Embedding(words, width, mask_zero=True, name=name, embeddings_initializer="random_normal")(tokens),
            layers.Embedding(64, width)(positions),
        ])  # fmt: skip

    def residual(x: Any, change: Any) -> Any:
        return layers.LayerNormalization(epsilon=1e-5)(layers.Add()([x, layers.Dropout(0.1)(change)]))

    def feed_forward(x: Any) -> Any:
        return residual(x, layers.Dense(width)(layers.Dense(3 * width, activation="gelu")(x)))

    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    memory = embed(source, "source_words")
    for _ in range(2):
        memory = residual(memory, layers.MultiHeadAttention(4, 4)(memory, memory))
        memory = feed_forward(memory)
    hidden = embed(target, "target_words")
    for _ in range(2):
        hidden = residual(hidden, layers.MultiHeadAttention(4, 4)(hidden, hidden, use_causal_mask=True))
        hidden = residual(hidden, layers.MultiHeadAttention(2, 8)(hidden, memory))
        hidden = feed_forward(hidden)
    network = keras.Model([source, target], layers.Dense(words, name="logits")(hidden))
    network.export(str(folder / "model"), verbose=False)
    random = np.random.default_rng(7)
    inputs = {"source": random.integers(1, words, (2, 9)), "target": random.integers(1, words, (2, 7))}
    inputs = {label: value.astype(np.int32) for label, value in inputs.items()}
    inputs["source"][1, 6:] = 0  # padding
    inputs["target"][0, 5:] = 0
    logits = network([inputs["source"], inputs["target"]], training=False)
    _save_case(folder, inputs, {"output_0": logits})
    return {"main": "model"}


@builder(_save_case)
def seq2seq(folder: Path) -> dict[str, Any]:
    """An attention encoder and decoder with greedy and beam search in while loops; a SavedModel.

    The second signature, "greedy", has the same input; its result is in `greedy.npz`.
    """
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(10)
    width, words, beams, longest, end = 12, 25, 3, 10, 1

    def weight(*shape: int) -> Any:
        return tf.Variable(random.normal(0, 2.5 * shape[0] ** -0.5, shape).astype(np.float32))

    class Translator(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = tf.Variable(random.normal(0, 1, (words, width)).astype(np.float32))
            self.encoder = [weight(2 * width, 2 * width), weight(2 * width, width)]
            self.decoder = [weight(3 * width, 2 * width), weight(3 * width, width)]
            self.query, self.output = weight(width, width), weight(2 * width, words)
            self.bias = tf.Variable(-2.5 * tf.one_hot(end, words))  # or a sentence ends at once

        def cell(self, weights: list[Any], x: Any, state: Any) -> Any:
            """A gated recurrent unit."""
            update, reset = tf.split(tf.sigmoid(tf.concat([x, state], -1) @ weights[0]), 2, -1)
            candidate = tf.tanh(tf.concat([x, reset * state], -1) @ weights[1])
            return update * state + (1 - update) * candidate

        def encode(self, source: Any) -> tuple[Any, Any]:
            embedded = tf.transpose(tf.nn.embedding_lookup(self.embedding, source), [1, 0, 2])
            state = tf.zeros([tf.shape(source)[0], width])
            steps = tf.TensorArray(tf.float32, tf.shape(source)[1])
            for time in tf.range(tf.shape(source)[1]):
                present = (source[:, time] != 0)[:, None]
                state = tf.where(present, self.cell(self.encoder, embedded[time], state), state)
                steps = steps.write(time, state)
            return tf.transpose(steps.stack(), [1, 0, 2]), state

        def step(self, token: Any, state: Any, memory: Any, mask: Any) -> tuple[Any, Any]:
            """Log probabilities of the next word."""
            attention = tf.einsum("bh,bth->bt", state @ self.query, memory) + mask
            context = tf.einsum("bt,bth->bh", tf.nn.softmax(attention), memory)
            state = self.cell(self.decoder, tf.concat([tf.gather(self.embedding, token), context], -1), state)
            return tf.nn.log_softmax(tf.concat([state, context], -1) @ self.output + self.bias), state

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="source")])
        def greedy(self, source: Any) -> dict[str, Any]:
            memory, state = self.encode(source)
            mask = tf.where(source == 0, -1e9, 0.0)
            token = tf.zeros_like(source[:, 0])
            done = tf.zeros_like(token, tf.bool)
            written = tf.TensorArray(tf.int32, 0, dynamic_size=True)
            total = tf.zeros_like(state[:, 0])
            time = 0
            while time < longest and not tf.reduce_all(done):
                scores, state = self.step(token, state, memory, mask)
                token = tf.where(done, end, tf.argmax(scores, -1, tf.int32))
                total += tf.where(done, 0.0, tf.reduce_max(scores, -1))
                done = done | (token == end)
                written = written.write(time, token)
                time += 1
            return {"tokens": tf.transpose(written.stack()), "score": total}

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="source")])
        def beam(self, source: Any) -> dict[str, Any]:
            memory, state = self.encode(source)
            batch = tf.shape(source)[0]
            memory, state = tf.repeat(memory, beams, 0), tf.repeat(state, beams, 0)
            mask = tf.repeat(tf.where(source == 0, -1e9, 0.0), beams, 0)
            token = tf.zeros([batch, beams], tf.int32)
            total = tf.tile(tf.constant([[0.0] + [-1e9] * (beams - 1)]), [batch, 1])
            done = tf.zeros([batch, beams], tf.bool)
            words_at = tf.TensorArray(tf.int32, longest, element_shape=[None, beams])
            parents = tf.TensorArray(tf.int32, longest, element_shape=[None, beams])
            only_end = tf.one_hot(end, words, 0.0, -1e9)
            time = 0
            while time < longest and not tf.reduce_all(done):
                scores, state = self.step(tf.reshape(token, [-1]), state, memory, mask)
                scores = tf.where(done[..., None], only_end, tf.reshape(scores, [batch, beams, words]))
                total, flat = tf.math.top_k(tf.reshape(total[..., None] + scores, [batch, -1]), beams)
                parent, token = flat // words, flat % words
                done = tf.gather(done, parent, batch_dims=1) | (token == end)
                state = tf.gather(tf.reshape(state, [batch, beams, width]), parent, batch_dims=1)
                state = tf.reshape(state, [-1, width])
                words_at, parents = words_at.write(time, token), parents.write(time, parent)
                time += 1
            path = tf.tile(tf.range(beams)[None], [batch, 1])
            tokens = tf.TensorArray(tf.int32, time)
            for back in tf.range(time - 1, -1, -1):
                tokens = tokens.write(back, tf.gather(words_at.read(back), path, batch_dims=1))
                path = tf.gather(parents.read(back), path, batch_dims=1)
            return {"tokens": tf.transpose(tokens.stack(), [1, 2, 0]), "scores": total}

    module = Translator()
    signatures = {"serving_default": module.beam, "greedy": module.greedy}
    tf.saved_model.save(module, str(folder / "model"), signatures=signatures)
    source = random.integers(2, words, (2, 8)).astype(np.int32)
    source[0, 6:] = 0
    _save_case(folder, {"source": source}, module.beam(tf.constant(source)))
    np.savez(folder / "greedy.npz", **{k: v.numpy() for k, v in module.greedy(tf.constant(source)).items()})
    return {"main": "model"}


@builder(_save_case)
def ragged_text(folder: Path) -> dict[str, Any]:
    """A text classifier that takes sentences: splitting, lookup tables, ragged and sparse embeddings; a SavedModel."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(12)
    vocabulary = ["the", "cat", "sat", "on", "mat", "a", "graph", "mill", "grinds", "slowly"]
    words_file = folder / "vocabulary.txt"
    words_file.write_text("\n".join(vocabulary) + "\n")

    class Classifier(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            initializer = tf.lookup.TextFileInitializer(
                str(words_file), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
            )  # fmt: skip
            self.table = tf.lookup.StaticVocabularyTable(initializer, num_oov_buckets=4)
            lengths = tf.lookup.KeyValueTensorInitializer(tf.range(1, 6, dtype=tf.int64), tf.linspace(0.1, 0.5, 5))
            self.lengths = tf.lookup.StaticHashTable(lengths, 1.0)
            self.embedding = tf.Variable(random.normal(0, 1, (14, 8)).astype(np.float32))
            self.weights = tf.Variable(random.normal(0, 1, (24, 3)).astype(np.float32))
            self.letters = tf.Variable(random.normal(0, 0.3, (128, 3)).astype(np.float32))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sentence")])
        def classify(self, sentence: Any) -> dict[str, Any]:
            clean = tf.strings.regex_replace(tf.strings.lower(sentence), r"[^a-z ]+", " ")
            tokens = tf.strings.split(clean)
            ids = self.table.lookup(tokens)
            vectors = tf.ragged.map_flat_values(tf.nn.embedding_lookup, self.embedding, ids)
            mean = tf.reduce_mean(vectors, axis=1)
            pairs = tf.strings.ngrams(tokens, 2, separator="_")
            buckets = tf.strings.to_hash_bucket_fast(pairs, 14)
            pair_mean = tf.reduce_max(tf.gather(self.embedding, buckets).to_tensor(default_value=-1.0), axis=1)
            sparse = tf.compat.v1.string_split(clean, delimiter=" ")
            sparse_ids = tf.SparseTensor(sparse.indices, self.table.lookup(sparse.values), sparse.dense_shape)
            length = tf.cast(tf.strings.length(sparse.values), tf.int64)
            importance = tf.SparseTensor(sparse.indices, self.lengths.lookup(length), sparse.dense_shape)
            weighted = tf.nn.safe_embedding_lookup_sparse(self.embedding, sparse_ids, importance, combiner="sqrtn")
            letters = tf.strings.unicode_decode(clean, "UTF-8")
            counts = tf.reduce_sum(tf.one_hot(letters.to_tensor(default_value=0), 128), axis=1)
            logits = tf.concat([mean, pair_mean, weighted], -1) @ self.weights + counts @ self.letters
            return {
                "probabilities": tf.nn.softmax(logits),
                "count": tokens.row_lengths(),
                "ids": ids.to_tensor(default_value=-1),
                "first": tokens.to_tensor(default_value="")[:, 0],
                "joined": tf.strings.reduce_join(tokens.to_tensor(), axis=1, separator="|"),
                "starts": ids.row_splits,
            }

    module = Classifier()
    tf.saved_model.save(module, str(folder / "model"), signatures=module.classify)
    sentences = ["The cat sat on the mat!", "Graph-mill grinds, slowly; and a zebra watches 7 others"]
    outputs = {label: value.numpy() for label, value in module.classify(tf.constant(sentences)).items()}
    outputs = {label: value.astype(bytes) if value.dtype == object else value for label, value in outputs.items()}
    _save_case(folder, {"sentence": np.array(sentences, bytes)}, outputs)
    return {"main": "model"}
