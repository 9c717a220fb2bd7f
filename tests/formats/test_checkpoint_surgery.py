"""Pruning, renaming, casting, averaging, resharding, importing; object-based checkpoints stay restorable."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.formats.bundle_cases import equal, small_checkpoint
from toolkit.errors import AlreadyExistsError, GraphmillError, InvalidArgumentError, NotFoundError, UsageError
from toolkit.formats.bundle import BundleReader, save
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.compare import CHANGED, EQUAL, compare
from toolkit.formats.bundle.object_graph import KEY, read_object_graph
from toolkit.formats.bundle.patterns import matcher, require_matches
from toolkit.formats.bundle.stats import statistics
from toolkit.formats.bundle.surgery import arithmetic, reshard
from toolkit.formats.bundle.surgery import prune as pruning
from toolkit.formats.bundle.surgery import rename as renaming
from toolkit.formats.bundle.transfer import copy_of, write_items
from toolkit.graph import dtypes

ATTRIBUTE = "/.ATTRIBUTES/VARIABLE_VALUE"


def tf1_names() -> dict[str, Any]:
    return {
        "dense/kernel": np.ones((2, 2), "f4"), "dense/kernel/Adam": np.zeros((2, 2), "f4"),
        "dense/kernel/Adam_1": np.zeros((2, 2), "f4"), "dense/kernel/ExponentialMovingAverage": np.ones((2, 2), "f4"),
        "train/dense/bias/Momentum": np.zeros(2), "dense/bias": np.zeros(2), "beta1_power": np.float32(0.9),
        "global_step": np.array(9), "Adam": np.zeros(1), "lonely/Adam": np.zeros(1),
    }  # fmt: skip


def test_optimizer_state_by_name(tmp_path: Path) -> None:
    """A variable that is only called like a slot stays."""
    save(tmp_path / "c", tf1_names())
    with BundleReader(tmp_path / "c") as reader:
        assert pruning.optimizer_state(reader) == {
            "dense/kernel/Adam", "dense/kernel/Adam_1", "train/dense/bias/Momentum", "beta1_power",
        }  # fmt: skip
        assert [name for name in reader if pruning.is_global_step(name)] == ["global_step"]
        assert [name for name in reader if pruning.is_moving_average(name)] == ["dense/kernel/ExponentialMovingAverage"]
        result = pruning.prune(reader, tmp_path / "d", lambda name: name.startswith("dense"))
    assert result.dropped_bytes == 16 + 4 + 8 + 8 + 8 and len(result.kept) == 5
    assert list(BundleReader(tmp_path / "d")) == result.kept
    with BundleReader(tmp_path / "c") as reader, pytest.raises(InvalidArgumentError, match="nothing would be left"):
        pruning.prune(reader, tmp_path / "e", lambda name: False)
    assert not list(tmp_path.glob("e*"))


@pytest.mark.tensorflow
def test_slots_that_tensorflow_1_makes(tf: ModuleType, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    optimizers = {
        "Adam": v1.train.AdamOptimizer(0.1), "Momentum": v1.train.MomentumOptimizer(0.1, 0.9),
        "Adagrad": v1.train.AdagradOptimizer(0.1), "RMSProp": v1.train.RMSPropOptimizer(0.1, momentum=0.9),
        "Ftrl": v1.train.FtrlOptimizer(0.1), "Adadelta": v1.train.AdadeltaOptimizer(0.1),
        "ProximalAdagrad": v1.train.ProximalAdagradOptimizer(0.1),
    }  # fmt: skip
    for name, optimizer in optimizers.items():
        with tf.Graph().as_default(), v1.Session() as session:
            w = v1.get_variable("scope/w", [3], use_resource=False)
            optimizer.minimize(tf.reduce_sum(w * w), global_step=v1.train.get_or_create_global_step())
            session.run(v1.global_variables_initializer())
            prefix = v1.train.Saver().save(session, str(tmp_path / name))
        with BundleReader(prefix) as reader:
            left = set(reader) - pruning.optimizer_state(reader)
            assert left == {"scope/w", "global_step"}, name


def trained(tf: ModuleType, folder: Path) -> tuple[Any, Any, str]:
    from tensorflow.python.keras.optimizer_v2 import adam

    net = tf.Module()
    net.w, net.b = tf.Variable([[1.0, 2.0]], name="w"), tf.Variable([0.5], name="b")
    optimizer = adam.Adam()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(net.w * net.w) + tf.reduce_sum(net.b)
    optimizer.apply_gradients(zip(tape.gradient(loss, [net.w, net.b]), [net.w, net.b], strict=True))
    checkpoint = tf.train.Checkpoint(net=net, opt=optimizer)
    return net, checkpoint, checkpoint.save(str(folder / "ckpt"))


@pytest.mark.tensorflow
def test_pruned_object_checkpoints_restore(tf: ModuleType, tmp_path: Path) -> None:
    net, _, prefix = trained(tf, tmp_path)
    value = net.w.numpy()
    with BundleReader(prefix) as reader:
        slots = pruning.optimizer_state(reader)
        assert len(slots) == 9 and not any(name.startswith("net/w/.ATTR") for name in slots)
        pruning.prune(reader, tmp_path / "p", lambda name: name not in slots and not pruning.is_global_step(name))
    with BundleReader(tmp_path / "p") as reader:
        assert set(reader) == {KEY, f"net/w{ATTRIBUTE}", f"net/b{ATTRIBUTE}"}
        assert set(read_object_graph(reader).keys()) == set(reader) - {KEY}
    net.w.assign([[0.0, 0.0]])
    tf.train.Checkpoint(net=net).read(str(tmp_path / "p")).assert_consumed()
    assert equal(net.w.numpy(), value)


@pytest.mark.tensorflow
def test_keras_3_optimizers(tf: ModuleType, tmp_path: Path) -> None:
    import keras

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])
    model.compile("adam", "mse")
    model.fit(np.zeros((4, 4)), np.zeros((4, 3)), verbose=0)
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(tmp_path / "c"))
    with BundleReader(tmp_path / "c") as reader:
        slots = pruning.optimizer_state(reader)
        assert {name.split("/")[1] for name in slots} >= {"_variables", "_iterations", "_learning_rate"}


def test_rules() -> None:
    names = ["a/kernel", "a/bias", "b/kernel"]

    def apply(*texts: str) -> dict[str, str]:
        return renaming.apply_rules(names, renaming.parse_rules(texts), "c")

    assert apply("a/*=x/*") == {"a/kernel": "x/kernel", "a/bias": "x/bias"}
    assert apply("*/kernel=*/w") == {"a/kernel": "a/w", "b/kernel": "b/w"}
    assert apply("a/bias=beta", "a/*=x/*") == {"a/bias": "beta", "a/kernel": "x/kernel"}
    assert apply(r"re:^(\w)/k=\1\1/k") == {"a/kernel": "aa/kernel", "b/kernel": "bb/kernel"}
    assert apply("a/kernel=b/kernel", "b/kernel=a/kernel") == {"a/kernel": "b/kernel", "b/kernel": "a/kernel"}
    assert apply("a/*=*") == {"a/kernel": "kernel", "a/bias": "bias"}


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("a/kernle=x", NotFoundError, "no tensor matches 'a/kernle'; did you mean 'a/kernel'"),
        ("a/kernel", UsageError, "is no rule: expected OLD=NEW"),
        ("*/kernel=w", InvalidArgumentError, "'a/kernel' and 'b/kernel' would all be called 'w'"),
        ("a/bias=a/kernel", InvalidArgumentError, "would all be called 'a/kernel'"),
        ("a/*=*/*", UsageError, "NEW has more stars than OLD"),
        ("re:(=x", UsageError, "not a usable expression"),
        (r"re:^(\w)/k=\2", UsageError, "not a usable expression"),
        (r"re:nowhere(.)=\2", UsageError, "not a usable expression"),
        ("a/bias=", InvalidArgumentError, "'a/bias' would have an empty name"),
    ],
)
def test_bad_rules(rule: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        renaming.apply_rules(["a/kernel", "a/bias", "b/kernel"], renaming.parse_rules([rule]), "c")


def test_renaming_parts_and_tables(tmp_path: Path) -> None:
    tensors = small_checkpoint(tmp_path / "c", 2)
    (tmp_path / "rules.txt").write_text("# new names\npart=kernel\n\nbias=beta\n")
    (tmp_path / "rules.json").write_text('{"part": "kernel"}')
    assert renaming.read_rules(tmp_path / "rules.json") == [("part", "kernel")]
    with BundleReader(tmp_path / "c") as reader:
        rules = renaming.read_rules(tmp_path / "rules.txt")
        renaming.rename(reader, tmp_path / "d", renaming.apply_rules(list(reader), rules, "c"))
    with BundleReader(tmp_path / "d") as reader:
        assert len(reader.entry("kernel").slices) == 2
        assert equal(reader.read("kernel"), tensors["part"]) and equal(reader.read("beta"), tensors["bias"])
    assert check(str(tmp_path / "d")).findings == []


@pytest.mark.tensorflow
def test_renamed_object_checkpoints_restore(tf: ModuleType, tmp_path: Path) -> None:
    net, _, prefix = trained(tf, tmp_path)
    value = net.w.numpy()
    with BundleReader(prefix) as reader:
        table = renaming.apply_rules(list(reader), [("net/w/*", "weights/*")], prefix)
        renaming.rename(reader, tmp_path / "r", table)
    net.w.assign([[0.0, 0.0]])
    tf.train.Checkpoint(net=net).read(str(tmp_path / "r")).expect_partial()
    assert equal(net.w.numpy(), value)


@pytest.mark.tensorflow
def test_to_names_and_back_to_objects(tf: ModuleType, tmp_path: Path) -> None:
    net, checkpoint, prefix = trained(tf, tmp_path)
    value = net.w.numpy()
    with BundleReader(prefix) as reader:
        names = renaming.to_names(reader, tmp_path / "named")
        assert names[f"net/w{ATTRIBUTE}"] == "w"
        with BundleReader(tmp_path / "named") as named:
            assert KEY not in named and equal(named.read("w"), value)
            renaming.to_objects(named, tmp_path / "objects", like=reader)
        objects = BundleReader(tmp_path / "objects")
        assert all(d.status == EQUAL for d in compare(reader, objects))
    # A TF1 graph restores the names.
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [1, 2])
        v1.train.Saver([w]).restore(session, str(tmp_path / "named"))
        assert equal(session.run(w), value)
    net.w.assign([[0.0, 0.0]])
    checkpoint.read(str(tmp_path / "objects")).assert_consumed()
    assert equal(net.w.numpy(), value)


@pytest.mark.tensorflow
def test_names_become_nested_objects(tf: ModuleType, tmp_path: Path) -> None:
    save(tmp_path / "c", {"dense/kernel": np.ones((2, 2), "f4"), "dense/bias": np.zeros(2, "f4"), "step": np.array(3)})
    with BundleReader(tmp_path / "c") as reader:
        renaming.to_objects(reader, tmp_path / "o")
    dense = tf.Module()
    dense.kernel, dense.bias = tf.Variable(tf.zeros((2, 2))), tf.Variable([1.0, 1.0])
    step = tf.Variable(0, dtype=tf.int64)
    tf.train.Checkpoint(dense=dense, step=step).read(str(tmp_path / "o")).assert_consumed()
    assert dense.kernel.numpy().sum() == 4 and dense.bias.numpy().sum() == 0 and step.numpy() == 3
    with BundleReader(tmp_path / "o") as reader:
        with pytest.raises(InvalidArgumentError, match="object-based already"):
            renaming.to_objects(reader, tmp_path / "x")
        assert set(renaming.to_names(reader, tmp_path / "n").values()) == {"dense/kernel", "dense/bias", "step"}


def test_casting(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c")
    with BundleReader(tmp_path / "c") as reader:
        half = dtypes.from_name("bfloat16")
        changed = arithmetic.cast(reader, tmp_path / "d", half, lambda name: reader.entry(name).dtype.is_floating)
        assert [entry.name for entry in changed] == ["bias", "part"]
        with pytest.raises(InvalidArgumentError, match="cannot be cast to string"):
            arithmetic.cast(reader, tmp_path / "e", dtypes.string, lambda name: True)
    with BundleReader(tmp_path / "d") as reader:
        assert reader.entry("bias").dtype is half and reader.read("bias").astype(float).tolist() == [1.5, -2]
        assert reader.entry("step").dtype is dtypes.int64 and reader.read("words").tolist() == [b"to", b"", b"be"]
    save(tmp_path / "z", {"z": np.array([1j])})
    with BundleReader(tmp_path / "z") as reader, pytest.raises(InvalidArgumentError, match="'z' is complex"):
        arithmetic.cast(reader, tmp_path / "e", dtypes.float32, lambda name: True)


def test_averaging(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((4, 3)).astype("f4") for _ in range(3)]
    for at, weight in enumerate(weights):
        save(
            tmp_path / f"c{at}",
            {"w": weight, "z": np.array([1j * at]), "step": np.array(at), "h": np.array([at], "f2")},
        )
    sources = [BundleReader(tmp_path / f"c{at}") for at in range(3)]

    def averaged(**options: Any) -> Any:
        assert arithmetic.average(sources, tmp_path / "avg", **options) == ["h", "w", "z"]
        reader = BundleReader(tmp_path / "avg")
        assert reader.read("step") == 2 and reader.entry("h").dtype is dtypes.float16
        return reader.read("w")

    # added in float64 and rounded once
    once = tolerance.gamma(1)
    np.testing.assert_allclose(averaged(), np.mean(weights, axis=0, dtype="f8"), rtol=once)
    expected = (weights[0].astype("f8") + 3 * weights[2].astype("f8")) / 4
    np.testing.assert_allclose(averaged(weights=[1, 0, 3]), expected, rtol=once)
    moving = weights[0].astype("f8")
    for weight in weights[1:]:
        moving = 0.9 * moving + 0.1 * weight
    np.testing.assert_allclose(averaged(decay=0.9), moving, rtol=once)


def test_averages_that_make_no_sense(tmp_path: Path) -> None:
    save(tmp_path / "a", {"w": np.zeros(2), "x": np.zeros(1)})
    save(tmp_path / "b", {"w": np.zeros(2)})
    save(tmp_path / "c", {"w": np.zeros(3)})
    a, b, c = (BundleReader(tmp_path / name) for name in "abc")
    for sources, options, message in (
        ([a, b], {}, "b: the checkpoints do not have the same tensors: 'x' is missing"),
        ([b, c], {}, r"c: tensor 'w' is float64\[2\] in '.*b' and float64\[3\] here"),
        ([b, b], {"weights": [1]}, "there are 1 weights for 2 checkpoints"),
        ([b, b], {"weights": [1, -1]}, "sum to 0"),
        ([b, b], {"decay": 2.0}, "between 0 and 1"),
        ([b, b], {"decay": 0.5, "weights": [1, 1]}, "not both"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            arithmetic.average(sources, tmp_path / "out", **options)
    assert not list(tmp_path.glob("out*"))


def test_resharding(tmp_path: Path) -> None:
    tensors = small_checkpoint(tmp_path / "c", 2)
    with BundleReader(tmp_path / "c") as reader:
        sizes = reshard.reshard([reader], tmp_path / "d", 3)
        assert sum(sizes) == sum(entry.bytes for entry in reader.entries.values())
        reshard.reshard([reader], tmp_path / "e", 1, join_parts=True)
        with pytest.raises(InvalidArgumentError, match="6 tensors cannot fill 7 data files"):
            reshard.reshard([reader], tmp_path / "f", 7)
        with pytest.raises(AlreadyExistsError, match="two tensors would be called"):
            reshard.reshard([reader, reader], tmp_path / "f", 1)
    for name, parts in (("d", 2), ("e", 0)):
        assert check(str(tmp_path / name)).findings == []
        with BundleReader(tmp_path / name) as reader:
            assert len(reader.entry("part").slices) == parts
            assert all(equal(reader.read(n), tensors[n]) for n in tensors)
    assert len(list(tmp_path.glob("d.data-*-of-00003"))) == 3


@pytest.mark.tensorflow
def test_partitioning_as_tensorflow_reads_it(tf: ModuleType, tmp_path: Path) -> None:
    kernel = np.arange(10, dtype="f4").reshape(5, 2)
    save(tmp_path / "c", {"w": kernel, "b": np.zeros(1)})
    with BundleReader(tmp_path / "c") as reader:
        reshard.partition(reader, tmp_path / "d", "w", 3)
        with pytest.raises(InvalidArgumentError, match=r"has shape .* and no axis 2"):
            reshard.partition(reader, tmp_path / "e", "w", 2, axis=2)
        with pytest.raises(InvalidArgumentError, match="cannot be cut into 6"):
            reshard.partition(reader, tmp_path / "e", "w", 6)
    assert [str(part) for part in BundleReader(tmp_path / "d").entry("w").slices] == ["0,2:0,2", "2,2:0,2", "4,1:0,2"]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [5, 2], partitioner=v1.fixed_size_partitioner(3), use_resource=False)
        v1.train.Saver().restore(session, str(tmp_path / "d"))
        assert equal(session.run(tf.convert_to_tensor(w)), kernel)


def test_slices_of_tensors(tmp_path: Path) -> None:
    tensors = small_checkpoint(tmp_path / "c")
    with BundleReader(tmp_path / "c") as reader:
        reshard.take_slices(reader, tmp_path / "d", [("part", "1,2:-"), ("words", "0,1")])
        with pytest.raises(InvalidArgumentError, match="tensor 'part': slice '9,1:-' reaches outside"):
            reshard.take_slices(reader, tmp_path / "e", [("part", "9,1:-")])
    with BundleReader(tmp_path / "d") as reader:
        assert equal(reader.read("part"), tensors["part"][1:3]) and reader.read("words").tolist() == [b"to"]


def test_importing(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c")
    reader = BundleReader(tmp_path / "c")
    arithmetic.import_arrays(reader, tmp_path / "d", {"bias": np.float32([3, 4]), "step": np.array(8, np.int32)})
    with BundleReader(tmp_path / "d") as changed:
        assert changed.entry("bias").dtype is dtypes.float64 and changed.read("bias").tolist() == [3, 4]
        assert changed.read("step") == 8
        assert [d.name for d in compare(reader, changed) if d.status == CHANGED] == ["bias", "step"]
    arithmetic.import_arrays(reader, tmp_path / "d", {"new": np.zeros(2)}, allow_new=True)
    assert "new" in BundleReader(tmp_path / "d")
    for arrays, error in (
        ({"bias": np.zeros(3)}, "tensor 'bias' has shape"),
        ({"biass": np.zeros(2)}, "there is no tensor 'biass'.*did you mean 'bias'"),
        ({"step": np.array(1.5)}, "'step' is int64, which cannot hold all values"),
        ({"step": np.array("x")}, "'step' is int64, the array holds"),
    ):
        with pytest.raises(GraphmillError, match=error):
            arithmetic.import_arrays(reader, tmp_path / "e", arrays)


def test_comparing(tmp_path: Path) -> None:
    base = {
        "same": np.array([1.0, np.nan]),
        "w": np.array([1.0, 2.0, 4.0]),
        "gone": np.zeros(1),
        "i": np.array([2**62]),
    }
    save(tmp_path / "a", {**base, "s": np.array([b"x"], object), "t": np.zeros(1, "f4"), "n": np.array([1.0])})
    other = {**base, "w": np.array([1.0, 2.5, 4.0]), "i": np.array([2**62 + 1]), "new": np.zeros(1)}
    del other["gone"]
    save(tmp_path / "b", {**other, "s": np.array([b"y"], object), "t": np.zeros(1), "n": np.array([np.nan])})
    a, b = BundleReader(tmp_path / "a"), BundleReader(tmp_path / "b")
    found = {d.name: d for d in compare(a, b)}
    assert {name: d.status for name, d in found.items()} == {
        "same": "equal", "w": "changed", "gone": "removed", "i": "changed", "s": "changed", "t": "changed",
        "new": "added", "n": "changed",
    }  # fmt: skip
    assert (found["w"].count, found["w"].max_abs, found["w"].max_rel) == (1, 0.5, 0.25)
    assert (found["i"].count, found["i"].max_abs) == (1, 1.0)
    assert found["n"].max_abs is None and found["n"].count == 1
    loose = {d.name: d.status for d in compare(a, b, rtol=0.25)}  # as much as "w" has changed
    assert loose["w"] == EQUAL and loose["n"] == CHANGED
    assert {d.name for d in compare(a, b, wanted=matcher(["w", "i"]))} == {"w", "i"}


def test_statistics(tmp_path: Path) -> None:
    save(tmp_path / "c", {
        "f": np.array([1.0, -3.0, np.nan, np.inf, 0.0]), "i": np.array([2**40, 1]), "b": np.array([True, False]),
        "z": np.array([3 + 4j]), "e": np.zeros((0,)), "s": np.array([b"x"], object),
        "h": np.array([1, 2]).astype(dtypes.from_name("bfloat16").numpy),
        "q": np.array([-2, 1]).astype(dtypes.from_name("int4").numpy),
    })  # fmt: skip
    with BundleReader(tmp_path / "c") as reader:
        found = {name: statistics(reader, entry) for name, entry in reader.entries.items()}
    f = found["f"]
    assert (f.minimum, f.maximum, f.nan, f.infinite, f.zeros) == (-3, 1, 1, 1, 1)
    assert f.mean == -2 / 3
    assert found["i"].maximum == 2**40 and found["b"].mean == 0.5 and found["z"].maximum == 5
    assert found["e"].mean is None and found["s"].mean is None
    assert found["h"].mean == 1.5 and found["q"].minimum == -2


def test_patterns() -> None:
    test = matcher(["a/*", "re:_1$"])
    assert test("a/b/c") and test("x_1") and not test("x_12") and not test("ba/c")
    require_matches(["a*"], ["abc"], "c")
    assert matcher(["x[0]"])("x[0]") and matcher(["x[0]"])("x0") and not matcher(["x[0]"])("x1")
    with pytest.raises(NotFoundError, match="no tensor matches 'dens/kernel'; did you mean 'dense/kernel'"):
        require_matches(["dens/kernel"], ["dense/kernel"], "c")
    for wrong in ("(", "(?<=x)y", "[[:", "x{1000}{1000}"):
        with pytest.raises(UsageError, match="not a regular expression"):
            matcher([f"re:{wrong}"])


def test_patterns_take_no_longer_the_more_they_could_match() -> None:
    """Python's own engine would try each of the 2^n ways to split the name."""
    name = "a" * 5000 + "!"
    for expression in ("^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^(.*)*b$"):
        assert not matcher([f"re:{expression}"])(name)
        with pytest.raises(NotFoundError):
            renaming.apply_rules([name], [(f"re:{expression}", "z")], "c")
    assert not matcher(["*a" * 200 + "b"])(name)


@pytest.mark.tensorflow
@pytest.mark.parametrize("attached", ["model", "optimizer", "both", "other name"])
def test_weights_that_are_called_after_the_optimizer_stay(tf: ModuleType, tmp_path: Path, attached: str) -> None:
    """The shortest path to a Keras model's kernel may lead through the optimizer: it is the model's all the same."""
    import keras

    def make() -> tuple[Any, Any]:
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(2)])
        model.compile("adam", "mse")
        model.fit(np.ones((8, 4)), np.ones((8, 2)), verbose=0)
        step = tf.Variable(7)
        children = {
            "model": {"model": model}, "optimizer": {"optimizer": model.optimizer},
            "both": {"model": model, "optimizer": model.optimizer},
            "other name": {"a": model.optimizer, "z": model},
        }[attached]  # fmt: skip
        return model, tf.train.Checkpoint(step=step, **children)

    model, checkpoint = make()
    checkpoint.save(str(tmp_path / "c"))
    with BundleReader(tmp_path / "c-1") as reader:
        slots = pruning.optimizer_state(reader)
        result = pruning.prune(reader, tmp_path / "p", lambda name: name not in slots)
        assert len(result.dropped) == 10  # a count, a rate, two moments of four variables
        assert len(result.kept) == 4 + 3
    other, again = make()
    again.read(str(tmp_path / "p")).expect_partial()
    for mine, theirs in zip(model.weights, other.weights, strict=True):
        assert equal(np.asarray(mine), np.asarray(theirs))


@pytest.mark.tensorflow
def test_object_graphs_with_optimizers_are_copied_to_the_byte(tf: ModuleType, tmp_path: Path) -> None:
    """Keras 3's optimizer lists, slot variables of the older ones, and their graph serialized again."""
    import keras
    from tensorflow.python.keras.optimizer_v2 import adam

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    model.compile(keras.optimizers.SGD(momentum=0.9), "mse")
    model.fit(np.zeros((4, 4)), np.zeros((4, 3)), verbose=0)
    net, optimizer = tf.Module(), adam.Adam()
    net.w = tf.Variable([1.0, 2.0])
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), net.w)])
    checkpoints = {
        "keras": tf.train.Checkpoint(model=model, optimizer=model.optimizer),
        "slots": tf.train.Checkpoint(net=net, opt=optimizer, step=tf.Variable(1, dtype=tf.int64)),
    }
    for name, checkpoint in checkpoints.items():
        prefix = checkpoint.write(str(tmp_path / name))
        with BundleReader(prefix) as reader:
            assert read_object_graph(reader).serialize() == reader.read(KEY).item()
            write_items(tmp_path / "copy", [copy_of(reader, key) for key in reader])
        for suffix in (".index", ".data-00000-of-00001"):
            assert Path(f"{prefix}{suffix}").read_bytes() == (tmp_path / f"copy{suffix}").read_bytes()
        checkpoint.read(str(tmp_path / "copy")).assert_consumed()


def test_many_stars_are_matched_in_linear_time() -> None:
    names = ["a" * 5_000, "a" * 40 + "b"]
    assert renaming.apply_rules(names, [("*a" * 20 + "*b", "new/*")], "ckpt") == {names[1]: "new/" + "a" * 20}
