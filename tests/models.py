"""Model files that TensorFlow writes, for everybody's tests.

Each builder below runs once, in its own process, and its files stay in `.cache/test-models/` of the checkout under
a key made of the builder's source and TensorFlow's version; later calls only read. Several test processes may ask
for the same model at once: one builds, the others wait.

    from tests.models import resnet50
    model = resnet50()
    model.path              # the frozen GraphDef
    model.input, model.output
    model.arrays()          # {"input": ..., "output": ...}: a batch and TensorFlow's answer

A builder may take arguments (text), `application("VGG16")`; each set of them is a model of its own.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import multiprocessing.context
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "test-models"
SIZE = 96  # pixels: the networks are made for 224, but nothing in them depends on it


@dataclass(frozen=True)
class Built:
    """A folder of files that one builder wrote.

    Attributes:
        folder: where they are; treat them as read-only.
        info: what the builder says about them (names of tensors, files, ...).
    """

    folder: Path
    info: dict[str, Any]

    @property
    def path(self) -> Path:
        """The main file or folder."""
        return self.folder / self.info["main"]

    @property
    def input(self) -> str:
        return self.info["input"]

    @property
    def output(self) -> str:
        return self.info["output"]

    def file(self, name: str) -> Path:
        return self.folder / name

    def arrays(self, name: str = "arrays.npz") -> dict[str, Any]:
        """The arrays in one of the .npz files."""
        import numpy as np

        with np.load(self.folder / name) as archive:
            return dict(archive)


Builder = Callable[..., dict[str, Any]]
#: what a builder calls: functions, or a file of them that is not imported before it is needed
Helper = Callable[..., Any] | Path
BUILDERS: dict[str, tuple[Builder, tuple[Helper, ...]]] = {}


def builder(*uses: Helper) -> Callable[[Builder], Callable[..., Built]]:
    """Register a function that writes files into a folder and returns the `info`; `uses` are helpers it calls."""

    def register(function: Builder) -> Callable[..., Built]:
        BUILDERS[function.__name__] = (function, uses)

        @functools.cache
        def get(*arguments: str) -> Built:
            return _get(function.__name__, arguments)

        get.__doc__ = function.__doc__
        return get

    return register


def own() -> list[str]:
    """The builders of this module that take no arguments: other modules add theirs when they are imported, in whatever
    order."""
    return sorted(
        name
        for name, (function, _) in BUILDERS.items()
        if function.__module__ == __name__ and len(inspect.signature(function).parameters) == 1
    )


def _key(name: str) -> str:
    function, uses = BUILDERS[name]
    source = "".join(f.read_text() if isinstance(f, Path) else inspect.getsource(f) for f in (function, *uses))
    versions = [importlib.metadata.version(package) for package in ("tensorflow-cpu", "keras")]
    return hashlib.sha256("\0".join([source, *versions]).encode()).hexdigest()[:16]


def _get(name: str, arguments: tuple[str, ...]) -> Built:
    label = "-".join([name, *arguments])
    folder = CACHE / f"{label}-{_key(name)}"
    manifest = folder / "info.json"
    if not manifest.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{label}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not manifest.exists():
                _build(name, arguments, folder)
    return Built(folder, json.loads(manifest.read_text()))


def build_into(folder: Path, name: str, *arguments: str) -> Built:
    """Build a model outside of the cache, for what is too large to keep."""
    _build(name, arguments, folder)
    return Built(folder, json.loads((folder / "info.json").read_text()))


def _build(name: str, arguments: tuple[str, ...], folder: Path) -> None:
    scratch = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    log = folder.with_name(f"{scratch.name}.log")
    try:
        work = (BUILDERS[name][0].__module__, name, str(scratch), arguments, str(log))
        process = _forks().Process(target=_build_alone, args=work, daemon=True)
        process.start()
        process.join()
        if process.exitcode != 0:
            said = log.read_text(errors="replace")[-4000:] if log.exists() else ""
            raise RuntimeError(f"TensorFlow could not build '{name}' (exit status {process.exitcode}):\n{said}")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        log.unlink(missing_ok=True)


@functools.cache
def _forks() -> multiprocessing.context.ForkServerContext:
    """Makes processes that have imported TensorFlow, once for all of them, and have done nothing else with it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["keras", "tensorflow"])
    wanted = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow"}
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)  # which are read when they are imported
    try:
        forkserver.ensure_running()
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
    return context


def _build_alone(module: str, name: str, folder: str, arguments: tuple[str, ...], log: str) -> None:
    """What `_build` runs in a process of its own."""
    with Path(log).open("w") as said:
        for number in (1, 2):
            os.dup2(said.fileno(), number)
    os.chdir(ROOT)
    importlib.import_module(module)
    info = BUILDERS[name][0](Path(folder), *arguments)
    (Path(folder) / "info.json").write_text(json.dumps(info, indent=1))


# -- frozen networks -------------------------------------------------------------------------------------


def _images(count: int) -> Any:
    """Images that differ in more than noise: a few random waves of their own on each, 0 to 255."""
    import numpy as np

    random = np.random.default_rng(7)
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
    images = np.zeros((count, SIZE, SIZE, 3), np.float32)
    for image in images:
        for _ in range(4):
            fx, fy, phase = random.uniform(-12, 12), random.uniform(-12, 12), random.uniform(0, 6.3)
            image += np.cos(6.3 * (fx * x + fy * y) + phase)[..., None] * random.uniform(-1, 1, 3).astype(np.float32)
        image += random.uniform(-1, 1, 3).astype(np.float32) + 0.3 * random.standard_normal(image.shape)
    return (255 / (1 + np.exp(-images))).astype(np.float32)


def _freeze_network(folder: Path, application: str, preprocess: Callable[[Any], Any]) -> dict[str, Any]:
    """Freeze a network of keras.applications whose batch norms are calibrated and whose output varies."""
    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    keras.utils.set_random_seed(11)
    random = np.random.default_rng(11)
    network = getattr(keras.applications, application)(weights=None, input_shape=(SIZE, SIZE, 3))
    batch = preprocess(_images(16))
    norms = [layer for layer in network.layers if isinstance(layer, keras.layers.BatchNormalization)]
    for norm in norms:
        norm.gamma.assign(random.uniform(0.7, 1.3, norm.gamma.shape))
        norm.beta.assign(random.uniform(-0.3, 0.3, norm.beta.shape))
        norm.momentum = 0.0  # one pass in training mode sets the moving statistics to the batch's
    last = network.layers[-1]
    until_last = keras.Model(network.input, last.input)
    until_last(batch, training=True)
    features = np.asarray(until_last(batch, training=False))
    kernel = np.asarray(last.kernel)
    logits = (features - features.mean(axis=0)) @ kernel
    kernel = kernel * (2.0 / logits.std())
    last.kernel.assign(kernel)
    last.bias.assign(-features.mean(axis=0) @ kernel)

    function = tf.function(lambda x: network(x, training=False))
    concrete = function.get_concrete_function(tf.TensorSpec([None, SIZE, SIZE, 3], tf.float32, name="input"))
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    tf.io.write_graph(frozen.graph.as_graph_def(), str(folder), "frozen.pb", as_text=False)
    inputs = batch[:4]
    outputs = np.asarray(frozen(tf.constant(inputs))[0])
    assert outputs.std(axis=0).max() > 1e-3, "the output does not vary with the input"
    np.savez(folder / "arrays.npz", input=inputs, output=outputs)
    return {"main": "frozen.pb", "input": frozen.inputs[0].name, "output": frozen.outputs[0].name}


@builder(_images, _freeze_network)
def resnet50(folder: Path) -> dict[str, Any]:
    """Frozen ResNet50 for 96x96 images; 100 MB."""
    return _freeze_network(folder, "ResNet50", lambda images: images - 127.0)


@builder(_images, _freeze_network)
def mobilenet_v2(folder: Path) -> dict[str, Any]:
    """Frozen MobileNetV2 for 96x96 images."""
    return _freeze_network(folder, "MobileNetV2", lambda images: images / 127.5 - 1)


@builder(_images, _freeze_network)
def efficientnet_b0(folder: Path) -> dict[str, Any]:
    """Frozen EfficientNetB0 for 96x96 images."""
    return _freeze_network(folder, "EfficientNetB0", lambda images: images)


# -- TensorFlow 1 training -------------------------------------------------------------------------------


def _lenet(folder: Path, use_resource: bool) -> dict[str, Any]:
    """A LeNet with a training step, its MetaGraph and checkpoint, and five losses after the checkpoint."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    random = np.random.default_rng(3)
    images = random.standard_normal((5, 16, 14, 14, 1)).astype(np.float32)
    labels = random.integers(0, 10, (5, 16)).astype(np.int64)
    with v1.Graph().as_default():
        v1.set_random_seed(5)
        x = v1.placeholder(tf.float32, [None, 14, 14, 1], name="images")
        y = v1.placeholder(tf.int64, [None], name="labels")

        def variable(name: str, shape: list[int], scale: float) -> Any:
            initializer = v1.truncated_normal_initializer(stddev=scale, seed=1) if scale else v1.zeros_initializer()
            return v1.get_variable(name, shape, initializer=initializer, use_resource=use_resource)

        hidden = x
        for layer, (depth, width) in enumerate(((1, 6), (6, 16)), 1):
            with v1.variable_scope(f"conv{layer}"):
                hidden = tf.nn.conv2d(hidden, variable("kernel", [5, 5, depth, width], 0.1), 1, "SAME")
                hidden = tf.nn.relu(tf.nn.bias_add(hidden, variable("bias", [width], 0.0)))
                hidden = tf.nn.max_pool2d(hidden, 2, 2, "VALID")
        hidden = tf.reshape(hidden, [-1, 3 * 3 * 16])
        with v1.variable_scope("dense1"):
            hidden = tf.nn.relu(hidden @ variable("kernel", [144, 32], 0.1) + variable("bias", [32], 0.0))
        with v1.variable_scope("dense2"):
            logits = tf.add(hidden @ variable("kernel", [32, 10], 0.1), variable("bias", [10], 0.0), name="logits")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses, name="loss")
        v1.summary.scalar("loss", loss)
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(0.01).minimize(loss, global_step=step, name="train")
        v1.add_to_collection("train_op", train)
        saver = v1.train.Saver(save_relative_paths=True)
        init = v1.global_variables_initializer()
        with v1.Session() as session:
            session.run(init)
            session.run(train, {x: images[0], y: labels[0]})
            prefix = saver.save(session, str(folder / "model.ckpt"), global_step=step)
            values = [session.run([loss, train], {x: i, y: t})[0] for i, t in zip(images, labels, strict=True)]
            out = session.run(logits, {x: images[0]})
    np.savez(folder / "arrays.npz", images=images, labels=labels, losses=np.array(values), logits_after=out)
    name = Path(prefix).name
    return {"main": f"{name}.meta", "prefix": name, "input": "images:0", "output": logits.name,
            "loss": "loss:0", "labels": "labels:0", "train": "train"}  # fmt: skip


@builder(_lenet)
def lenet_ref(folder: Path) -> dict[str, Any]:
    """A LeNet's training MetaGraph with reference variables (VariableV2), and its checkpoint."""
    return _lenet(folder, use_resource=False)


@builder(_lenet)
def lenet_resource(folder: Path) -> dict[str, Any]:
    """A LeNet's training MetaGraph with resource variables (VarHandleOp), and its checkpoint."""
    return _lenet(folder, use_resource=True)


# -- SavedModels -----------------------------------------------------------------------------------------


@builder()
def saved_model_tf2(folder: Path) -> dict[str, Any]:
    """A tf.Module with two signatures, functions that call functions, a loop, a branch and an asset file."""
    import numpy as np
    import tensorflow as tf

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), name="weight")
            self.bias = tf.Variable(tf.constant([0.5, -0.5, 0.0]), name="bias")
            asset = folder / "words.txt"
            asset.write_text("one\ntwo\n")
            self.words = tf.saved_model.Asset(str(asset))

        @tf.function
        def project(self, x: Any) -> Any:
            return x @ self.weight + self.bias

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def serve(self, x: Any) -> Any:
            y = self.project(x)
            y = tf.cond(tf.reduce_sum(y) > 0, lambda: y * 2.0, lambda: y - 1.0)
            return {"scores": tf.nn.softmax(y), "hidden": y}

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32, name="n"), tf.TensorSpec([2], tf.float32, name="x")])
        def power(self, n: Any, x: Any) -> Any:
            def body(i: Any, value: Any) -> Any:
                return i + 1, value * x

            return {"result": tf.while_loop(lambda i, value: i < n, body, [0, tf.ones_like(x)])[1]}

        @tf.function(input_signature=[])
        def vocabulary(self) -> Any:
            return {"text": tf.io.read_file(self.words.asset_path)}

    module = Module()
    signatures = {"serving_default": module.serve, "power": module.power, "vocabulary": module.vocabulary}
    tf.saved_model.save(module, str(folder / "model"), signatures=signatures)
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    served = module.serve(tf.constant(x))
    base = np.array([1.5, -2.0], np.float32)
    np.savez(
        folder / "arrays.npz", x=x, scores=served["scores"], hidden=served["hidden"], base=base,
        power=module.power(tf.constant(5), tf.constant(base))["result"],
    )  # fmt: skip
    return {"main": "model", "input": "x", "output": "scores"}


@builder()
def saved_model_keras(folder: Path) -> dict[str, Any]:
    """A small Keras CNN with batch norm and dropout, as model.export() writes it."""
    import keras
    import numpy as np

    keras.utils.set_random_seed(2)
    model = keras.Sequential(
        [
            keras.layers.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(4, 3, padding="same", activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.export(str(folder / "model"), verbose=False)
    image = np.random.default_rng(4).standard_normal((2, 8, 8, 1)).astype(np.float32)
    np.savez(folder / "arrays.npz", input=image, output=np.asarray(model(image, training=False)))
    return {"main": "model", "input": "image", "output": "output_0"}


@builder()
def saved_model_tf1(folder: Path) -> dict[str, Any]:
    """A TensorFlow 1 SavedModel with two MetaGraphs: tags serve, and serve + training."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    save = v1.saved_model.Builder(str(folder / "model"))
    for training in (False, True):
        with v1.Graph().as_default():
            x = v1.placeholder(tf.float32, [None, 4], name="x")
            weight = v1.get_variable("weight", initializer=np.ones((4, 2), np.float32), use_resource=False)
            bias = v1.get_variable("bias", initializer=np.zeros(2, np.float32), use_resource=False)
            y = tf.add(x @ weight, bias, name="y")
            if training:
                y = tf.identity(v1.nn.dropout(y, rate=0.5, seed=1), name="dropped")
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                if training:
                    save.add_meta_graph(["serve", "train"], signature_def_map={"train": signature})
                else:
                    save.add_meta_graph_and_variables(
                        session, ["serve"], signature_def_map={"serving_default": signature}
                    )
    save.save()
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.savez(folder / "arrays.npz", x=x, y=x @ np.ones((4, 2), np.float32))
    return {"main": "model", "input": "x", "output": "y"}


@builder()
def saved_model_tables(folder: Path, kind: str) -> dict[str, Any]:
    """A SavedModel with variables and a table that an asset fills: of 1.x ("v1", a reference and a resource variable,
    a saver, a legacy init op) or with objects and functions ("objects"). Arrays x and w, and y and ids for them."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    words = folder / "words.txt"
    words.write_text("red\ngreen\nblue\n")
    weight = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    x = np.linspace(0, 2, 8, dtype=np.float32).reshape(2, 4)
    w = np.array([b"green", b"grey"])
    if kind == "v1":
        with v1.Graph().as_default(), v1.Session() as session:
            given, wanted = v1.placeholder(tf.float32, [None, 4], name="x"), v1.placeholder(tf.string, [None], name="w")
            kernel = v1.get_variable("kernel", initializer=weight, use_resource=False)
            bias = v1.get_variable("bias", initializer=np.float32([0.5, -0.5, 0]), use_resource=True)
            asset = tf.constant(str(words), name="words")
            v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
            source = tf.lookup.TextFileInitializer(asset, tf.string, line, tf.int64, number)
            table = tf.lookup.StaticHashTable(source, -1)
            y, ids = tf.tanh(given @ kernel + bias, name="y"), tf.identity(table.lookup(wanted), name="ids")
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            v1.saved_model.simple_save(
                session, str(folder / "model"), {"x": given, "w": wanted}, {"y": y, "ids": ids},
                legacy_init_op=v1.tables_initializer(),
            )  # fmt: skip
            out = session.run([y, ids], {given: x, wanted: w})
    else:

        class Module(tf.Module):
            def __init__(self) -> None:
                super().__init__()
                self.kernel, self.bias = tf.Variable(weight), tf.Variable(np.float32([0.5, -0.5, 0]))
                source = tf.lookup.TextFileInitializer(str(words), tf.string, line, tf.int64, number)
                self.table = tf.lookup.StaticHashTable(source, -1)

            @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([None], tf.string)])
            def serve(self, x: Any, w: Any) -> Any:
                return {"y": tf.tanh(x @ self.kernel + self.bias), "ids": self.table.lookup(w)}

        module = Module()
        tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
        result = module.serve(tf.constant(x), tf.constant(w))
        out = [result["y"].numpy(), result["ids"].numpy()]
    np.savez(folder / "arrays.npz", x=x, w=w, y=out[0], ids=out[1])
    return {"main": "model", "input": "x", "output": "y"}


# -- control flow ----------------------------------------------------------------------------------------


def _control_flow(folder: Path, v2: bool) -> dict[str, Any]:
    """A loop within a loop, a branch, and the gradient through the loop, as a GraphDef."""
    import numpy as np
    import tensorflow as tf

    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [3], name="x")
        n = v1.placeholder(tf.int32, [], name="n")

        def outer(i: Any, total: Any) -> Any:
            inner = v1.while_loop(lambda j, s: j < i + 1, lambda j, s: (j + 1, s + total), [0, tf.zeros([3])])[1]
            return i + 1, tf.tanh(total + 0.1 * inner)

        loop = tf.identity(v1.while_loop(lambda i, t: i < n, outer, [0, x], name="outer")[1], name="loop")
        branch = tf.identity(
            v1.cond(tf.reduce_sum(x) > 0, lambda: x * loop, lambda: x - loop, name="choice"), name="branch"
        )
        gradient = tf.identity(v1.gradients(tf.reduce_sum(branch), x)[0], name="gradient")
        values = np.array([[0.5, -0.2, 0.9], [-0.5, 0.1, -0.9]], np.float32)
        with v1.Session() as session:
            results = [session.run([loop, branch, gradient], {x: value, n: 3}) for value in values]
        tf.io.write_graph(graph.as_graph_def(), str(folder), "graph.pb", as_text=False)
    loops, branches, gradients = (np.stack(column) for column in zip(*results, strict=True))
    np.savez(folder / "arrays.npz", x=values, n=np.int32(3), loop=loops, branch=branches, gradient=gradients)
    return {"main": "graph.pb", "input": "x:0", "output": "loop:0"}


@builder(_control_flow)
def control_flow_v1(folder: Path) -> dict[str, Any]:
    """Loops and branches of Enter, Switch, Merge, NextIteration and Exit. Feeds x:0 [3] and n:0 (3); arrays x has
    two values of x, and loop, branch, gradient the results for each."""
    return _control_flow(folder, v2=False)


@builder(_control_flow)
def control_flow_v2(folder: Path) -> dict[str, Any]:
    """The same of While, If and functions."""
    return _control_flow(folder, v2=True)
