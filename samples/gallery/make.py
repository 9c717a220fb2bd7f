"""Make the pictures of this folder: python samples/gallery/make.py

Needs the extra `test`: the models are TensorFlow's, drawn by graphmill. Random weights; they do not show.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

HERE = Path(__file__).resolve().parent


def _run(command: list[str], out: Path) -> Path:
    """Run one command of graphmill; returns its output file."""
    from commands.main import run

    if run([*command, "-o", str(out)]):
        sys.exit(1)
    return out


def _write(folder: Path, name: str, graph_def: Any) -> Path:
    path = folder / f"{name}.pb"
    path.write_bytes(graph_def.SerializeToString(deterministic=True))
    return path


def _lenet(
    v1: Any, tf: Any, second: str = "conv2", pooling: str = "VALID", normalize: bool = False, output: Any = None
) -> Any:
    """LeNet-5 as TensorFlow 1 code built it; returns the loss."""

    def layer(name: str, x: Any, shape: list[int], pool: bool = False, activate: bool = True) -> Any:
        with v1.variable_scope(name):
            kernel = v1.get_variable("kernel", shape, use_resource=False)
            bias = v1.get_variable("bias", shape[-1:], use_resource=False)
            y = tf.nn.conv2d(x, kernel, 1, "SAME") if len(shape) == 4 else tf.matmul(x, kernel)
            y = tf.nn.bias_add(y, bias)
            y = tf.nn.relu(y) if activate else y
            return tf.nn.max_pool2d(y, 2, 2, pooling) if pool else y

    images = v1.placeholder(tf.float32, [None, 28, 28, 1], name="images")
    labels = v1.placeholder(tf.int64, [None], name="labels")
    x = layer("conv1", images, [5, 5, 1, 6], pool=True)
    x = layer(second, x, [5, 5, 6, 16], pool=True)
    x = tf.reshape(x, [-1, 784], name="flatten")
    x = layer("fc1", x, [784, 120])
    x = layer("fc2", x, [120, 84])
    x = tf.nn.l2_normalize(x, -1, name="normalize") if normalize else x
    logits = layer("logits", x, [84, 10], activate=False)
    (output or tf.nn.softmax)(logits, name="probabilities")
    with v1.name_scope("loss"):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def lenet(folder: Path) -> Path:
    """The forward part of LeNet-5."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        _lenet(v1, tf)
        whole = graph.as_graph_def(add_shapes=True)
    return _run(["prune", str(_write(folder, "lenet-whole", whole)), "--fetch", "probabilities"], folder / "lenet.pb")


def lenet_changed(folder: Path) -> Path:
    """LeNet-5 with a renamed layer, other pooling, a normalization more and another activation at its end."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        _lenet(v1, tf, second="features", pooling="SAME", normalize=True, output=tf.nn.sigmoid)
        whole = graph.as_graph_def(add_shapes=True)
    out = folder / "lenet-changed.pb"
    return _run(["prune", str(_write(folder, "lenet-changed-whole", whole)), "--fetch", "probabilities"], out)


def training(folder: Path) -> Path:
    """LeNet-5 with its gradients, Adam, a saver, summaries and an initializer."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        loss = _lenet(v1, tf)
        v1.summary.scalar("loss", loss)
        v1.summary.merge_all()
        v1.train.AdamOptimizer(1e-3).minimize(loss, global_step=v1.train.get_or_create_global_step())
        v1.global_variables_initializer()
        v1.train.Saver()
        return _write(folder, "training", graph.as_graph_def(add_shapes=True))


def trace(folder: Path) -> Path:
    """The RunMetadata of one training step of LeNet-5, as TensorFlow writes it."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default():
        step = v1.train.AdamOptimizer(1e-3).minimize(_lenet(v1, tf))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feeds = {"images:0": np.random.rand(64, 28, 28, 1), "labels:0": np.random.randint(0, 10, 64)}
            session.run(step, feeds)
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            session.run(step, feeds, options=options, run_metadata=metadata)
    path = folder / "step.pb"
    path.write_bytes(metadata.SerializeToString())
    return path


def _frozen(folder: Path, name: str, model: Any, shape: list[int]) -> Path:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    function = tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec(shape, tf.float32, name="input"))
    frozen = convert_variables_to_constants_v2(function, lower_control_flow=False)
    return _write(folder, name, frozen.graph.as_graph_def(add_shapes=True))


def resnet50(folder: Path) -> Path:
    """ResNet-50, frozen."""
    import keras

    return _frozen(folder, "resnet50", keras.applications.ResNet50(weights=None), [1, 224, 224, 3])


def transformer(folder: Path) -> Path:
    """Twelve layers of a transformer, whose parts have no scopes of their own, frozen."""
    import keras

    inputs = x = keras.Input([16, 64])
    for n in range(12):
        attended = keras.layers.MultiHeadAttention(4, 16, name=f"attention_{n}")(x, x)
        x = keras.layers.LayerNormalization(name=f"norm_a_{n}")(x + attended)
        hidden = keras.layers.Dense(128, activation="gelu", name=f"ffn_up_{n}")(x)
        hidden = keras.layers.Dense(64, name=f"ffn_down_{n}")(hidden)
        x = keras.layers.LayerNormalization(name=f"norm_b_{n}")(x + hidden)
    outputs = keras.layers.Dense(10, activation="softmax", name="head")(x)
    return _frozen(folder, "transformer", keras.Model(inputs, outputs), [1, 16, 64])


def _lstm() -> Any:
    import keras

    inputs = keras.Input([20, 16])
    hidden = keras.layers.LSTM(32)(inputs)
    return keras.Model(inputs, keras.layers.Dense(5, activation="softmax")(hidden))


def lstm(folder: Path) -> Path:
    """An LSTM with its loop, frozen."""
    return _frozen(folder, "lstm", _lstm(), [1, 20, 16])


def saved_model(folder: Path) -> Path:
    """A SavedModel whose network is in functions."""
    _lstm().export(str(folder / "saved_model"), verbose=False)
    return folder / "saved_model"


def loop(folder: Path) -> Path:
    """A loop and a condition in the form of TensorFlow 1, with Switch and Merge."""
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [8], name="x")
        w = v1.get_variable("w", [8], use_resource=False)
        _, y = v1.while_loop(lambda i, _: i < 10, lambda i, a: (i + 1, a * w + x), [tf.constant(0), x], name="iterate")
        y = v1.cond(tf.reduce_sum(y) > 0, lambda: y * 2, lambda: y - 1, name="choose")
        tf.identity(y, name="y")
        definition = graph.as_graph_def(add_shapes=True)
    v1.enable_control_flow_v2()
    return _write(folder, "loop", definition)


def partition(folder: Path) -> Path:
    """A training step split between a parameter server and a worker."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            w = v1.get_variable("w", [784, 100], use_resource=False)
            b = v1.get_variable("b", [100], use_resource=False)
        with v1.device("/job:worker/task:0"):
            x = v1.placeholder(tf.float32, [None, 784], name="x")
            y = v1.placeholder(tf.float32, [None, 100], name="y")
            hidden = tf.nn.relu(tf.matmul(x, w) + b, name="hidden")
            loss = tf.reduce_mean(tf.square(hidden - y), name="loss")
            v1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        whole = _write(folder, "ps_worker", graph.as_graph_def(add_shapes=True))
    pruned = _run(["prune", str(whole), "--target", "train"], folder / "pruned.pb")
    placed = _run(["place", str(pruned), "--cluster", str(HERE.parent / "cluster.yaml")], folder / "placed.pb")
    return _run(["partition", str(placed), "--by", "task"], folder / "parts")


#: picture -> (model, options of `graphmill visualize`); a function among the options stands for the file it makes
PICTURES: dict[str, tuple[Callable[[Path], Path], list[str | Callable[[Path], Path]]]] = {
    "lenet": (lenet, []),
    "lenet-print": (lenet, ["--theme", "print"]),
    "diff": (lenet_changed, ["--against", lenet]),
    "training": (training, []),
    "training-gradients": (training, ["--focus", "conv2/Conv2D", "--hops", "2"]),
    "training-colorblind": (training, ["--theme", "colorblind", "--highlight", "images", "loss"]),
    "training-time": (training, ["--costs", trace]),
    "timeline": (trace, []),
    "resnet50": (resnet50, []),
    "resnet50-block": (resnet50, ["--focus", "resnet50_1/conv3_block1_add_1/Add", "--hops", "3", "--direction", "TB"]),
    "transformer": (transformer, []),
    "transformer-dark": (transformer, ["--theme", "dark", "--color", "structure"]),
    "lstm": (lstm, []),
    "saved-model": (saved_model, []),
    "loop": (loop, []),
    "partition": (partition, ["--color", "partition"]),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        made: dict[Callable[[Path], Path], Path] = {}

        def file(make: Callable[[Path], Path]) -> Path:
            if make not in made:
                made[make] = make(Path(name))
            return made[make]

        for picture, (make, options) in PICTURES.items():
            words = [option if isinstance(option, str) else str(file(option)) for option in options]
            out = _run(["visualize", str(file(make)), *words], HERE / f"{picture}.svg")
            print(f"{out.name}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
