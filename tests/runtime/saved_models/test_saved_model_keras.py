"""Keras models as model.export and tf.saved_model.save write them, preprocessing layers included."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.networks.network_case import assert_varies
from tests.runtime.saved_models.saved_model_case import check_saved_model
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow
WORDS = ["the", "cat", "sat", "on", "mat"]
SENTENCES = np.array(["The cat SAT, on the mat!", "a dog; the mat", ""], object)
NUMBERS = np.random.default_rng(31).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def keras(tf: ModuleType) -> Any:
    import keras

    keras.utils.set_random_seed(31)
    return keras


def _export(network: Any, folder: Path) -> Path:
    network.export(str(folder / "model"), verbose=False)
    return folder / "model"


def _text(shape: tuple[int, ...] = (), name: str = "text") -> Any:
    import keras

    return keras.Input(shape, dtype="string", name=name)


LOOKUPS = {
    "int": {}, "no_unknown": {"num_oov_indices": 0}, "three_unknown": {"num_oov_indices": 3},
    "masked": {"mask_token": ""}, "one_hot": {"output_mode": "one_hot"}, "multi_hot": {"output_mode": "multi_hot"},
    "count": {"output_mode": "count"}, "inverse": {"invert": True},
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKUPS)
def test_string_lookup(tf: ModuleType, keras: Any, tmp_path: Path, name: str) -> None:
    layer = keras.layers.StringLookup(vocabulary=WORDS, **LOOKUPS[name])
    inverse = name == "inverse"
    module = tf.Module()
    module.layer = layer
    spec = tf.TensorSpec([None, 3], tf.int64 if inverse else tf.string, name="x")
    module.serve = tf.function(lambda x: {"y": layer(x)}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    known = np.array([["cat", "mat", "sat"], ["on", "the", "cat"]], object)
    some = np.array([["cat", "zebra", "the"], ["", "mat", "Cat"]], object)
    given = np.array([[0, 1, 2], [5, 3, 4]]) if inverse else known if name == "no_unknown" else some
    check_saved_model(tf, tmp_path / "model", {"x": given})


VECTORIZATIONS = {
    "int": {"output_sequence_length": 6}, "ragged_length": {}, "bigrams": {"ngrams": 2, "output_sequence_length": 8},
    "multi_hot": {"output_mode": "multi_hot"}, "count": {"output_mode": "count"},
    "characters": {"split": "character", "output_sequence_length": 12},
    "verbatim": {"standardize": None, "output_sequence_length": 5},
    "stripped": {"standardize": "strip_punctuation", "output_sequence_length": 5},
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORIZATIONS)
def test_text_vectorization(tf: ModuleType, keras: Any, tmp_path: Path, name: str) -> None:
    layer = keras.layers.TextVectorization(**VECTORIZATIONS[name])
    layer.adapt(["the cat sat on the mat", "the mat", "a graph mill"])
    text = _text()
    network = keras.Model(text, layer(text))
    check_saved_model(tf, _export(network, tmp_path), {"text": SENTENCES})


def test_tf_idf(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    layer = keras.layers.TextVectorization(output_mode="tf_idf")
    layer.adapt(["the cat sat on the mat", "the mat", "a graph mill"])
    text = _text()
    check_saved_model(tf, _export(keras.Model(text, layer(text)), tmp_path), {"text": SENTENCES})


def test_numbers_into_classes(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    """Normalization, Discretization, IntegerLookup, Hashing, CategoryEncoding, HashedCrossing, Rescaling."""
    layers = keras.layers
    number, code = keras.Input((4,), name="number"), keras.Input((2,), dtype="int64", name="code")
    word = _text((2,), "word")
    normal = layers.Normalization()
    normal.adapt(NUMBERS)
    bins = layers.Discretization(num_bins=4)
    bins.adapt(NUMBERS)
    crossed = layers.HashedCrossing(num_bins=50, output_mode="one_hot")((code[:, :1], word[:, 0:1]))
    outputs = {
        "normal": normal(number), "back": layers.Normalization(mean=1.0, variance=4.0, invert=True)(number),
        "bins": bins(number), "codes": layers.IntegerLookup(vocabulary=[10, 20, 30])(code),
        "hashed": layers.Hashing(num_bins=100)(word), "salted": layers.Hashing(num_bins=100, salt=[3, 4])(code),
        "masked": layers.Hashing(num_bins=10, mask_value="")(word), "crossed": crossed,
        "multi_hot": layers.CategoryEncoding(num_tokens=40, output_mode="multi_hot")(code),
        "scaled": layers.Rescaling(1 / 127.5, -1.0)(number),
    }  # fmt: skip
    folder = _export(keras.Model([number, code, word], outputs), tmp_path)
    words = np.array([["cat", ""], ["mill", "graph"], ["ü", "cat"]], object)
    check_saved_model(tf, folder, {"number": NUMBERS, "code": np.array([[10, 0], [30, 7], [39, 20]]), "word": words})


def test_images(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    """Resizing, cropping, rescaling; random layers do nothing when serving."""
    layers = keras.layers
    image = keras.Input((None, None, 3), name="image")
    x = layers.Resizing(20, 24, interpolation="bilinear")(image)
    x = layers.RandomFlip()(layers.RandomRotation(0.2)(layers.CenterCrop(16, 16)(x)))
    x = layers.RandomContrast(0.3)(layers.RandomZoom(0.2)(layers.Rescaling(1 / 255)(x)))
    x = layers.GaussianNoise(0.5)(layers.ZeroPadding2D(1)(x))
    x = layers.SeparableConv2D(6, 3, activation="selu")(layers.SpatialDropout2D(0.2)(x))
    x = layers.UnitNormalization()(layers.GroupNormalization(3)(layers.Conv2DTranspose(6, 3, strides=2)(x)))
    x = layers.PReLU(alpha_initializer="random_normal")(x)
    x = layers.Flatten()(layers.AveragePooling2D(2, padding="same")(layers.UpSampling2D()(x)))
    scores = layers.Dense(5)(x)
    folder = _export(keras.Model(image, scores), tmp_path)
    y, x = np.mgrid[0:30, 0:26]
    pixels = np.stack([y * 8 + x, 255 * ((y // 4 + x // 4) % 2)])[..., None] * np.float32([1.0, 0.3, 0.6])
    assert_varies(check_saved_model(tf, folder, {"image": pixels.astype(np.float32)}))


def test_recurrent_stack_with_masking(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    layers = keras.layers
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    x = layers.Embedding(20, 8, mask_zero=True, embeddings_initializer="random_normal")(tokens)
    x = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(x)
    x = layers.GRU(5, return_sequences=True, reset_after=False, go_backwards=True)(x)
    x = layers.RNN([layers.LSTMCell(4), layers.SimpleRNNCell(4)], return_sequences=True)(x)
    whole, state = layers.GRU(4, return_sequences=True, return_state=True)(x)
    outputs = {"last": layers.Dense(3)(state), "every": layers.TimeDistributed(layers.Dense(2, "tanh"))(whole)}
    folder = _export(keras.Model(tokens, outputs), tmp_path)
    assert_varies(check_saved_model(tf, folder, {"tokens": np.int32([[3, 5, 7, 0, 0], [1, 2, 19, 4, 6]])}))


def test_layers_of_other_kinds(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    """Convolutions in one and three dimensions, ConvLSTM, attention of both kinds, EinsumDense, Conv1D causal."""
    layers = keras.layers
    sound, film = keras.Input((32, 2), name="sound"), keras.Input((4, 8, 8, 1), name="film")
    x = layers.Conv1D(4, 3, padding="causal", dilation_rate=2)(sound)
    x = layers.DepthwiseConv1D(3)(layers.MaxPooling1D()(layers.LeakyReLU()(x)))
    x = layers.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d")(layers.Cropping1D(1)(x))
    attended = layers.AdditiveAttention()([x, x]) + layers.Attention()([x, x])
    grouped = layers.GroupQueryAttention(3, 4, 2)(x, x)
    y = layers.ConvLSTM2D(3, 3, return_sequences=True)(film)
    y = layers.GlobalAveragePooling3D()(layers.Conv3DTranspose(2, 2)(layers.Conv3D(3, 2)(y)))
    outputs = {"sound": layers.LayerNormalization(rms_scaling=False)(attended) + grouped, "film": layers.Softmax()(y)}
    folder = _export(keras.Model([sound, film], outputs), tmp_path)
    random = np.random.default_rng(2)
    inputs = {"sound": random.standard_normal((2, 32, 2)), "film": random.standard_normal((2, 4, 8, 8, 1))}
    check_saved_model(tf, folder, {name: value.astype(np.float32) for name, value in inputs.items()})


def test_subclass_with_endpoints(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    """An export archive with several endpoints, nested inputs and nested outputs."""

    class Network(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(3, activation="gelu")
            self.norm = keras.layers.BatchNormalization()

        def call(self, inputs: Any) -> Any:
            hidden = self.norm(self.dense(inputs["a"]) + inputs["b"])
            return {"top": hidden, "rest": (hidden * 2, [hidden - 1])}

    network = Network()
    network({"a": NUMBERS, "b": NUMBERS[:, :3]})
    archive = keras.export.ExportArchive()
    archive.track(network)
    spec = {"a": tf.TensorSpec([None, 4], tf.float32, "a"), "b": tf.TensorSpec([None, 3], tf.float32, "b")}
    archive.add_endpoint("call", lambda inputs: network(inputs)["top"], input_signature=[spec])
    archive.add_endpoint(
        "both", lambda inputs: {"top": network(inputs)["top"], "shift": network(inputs)["rest"][1][0]},
        input_signature=[spec],
    )  # fmt: skip
    archive.write_out(str(tmp_path / "model"), verbose=False)
    inputs = {"a": NUMBERS, "b": NUMBERS[:, :3] * 2}
    assert set(read_model(tmp_path / "model").meta.signatures) >= {"call", "both", "serving_default"}
    for key in ("call", "both", "serving_default"):
        check_saved_model(tf, tmp_path / "model", inputs, key)


def test_list_of_outputs(tf: ModuleType, keras: Any, tmp_path: Path) -> None:
    a = keras.Input((4,), name="a")
    dense = keras.layers.Dense(2)(a)
    folder = _export(keras.Model({"features": a}, [dense, dense * 2]), tmp_path)
    inputs = read_model(folder).meta.signatures["serving_default"].inputs
    assert set(check_saved_model(tf, folder, {next(iter(inputs)): NUMBERS})) == {"output_0", "output_1"}
