"""Savers beside TensorFlow's: nodes (tests/tf1/calls/train.py), files, state files, MetaGraphs, mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas import meta_graph_pb2
from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.client.metagraphs.messages import MESSAGES
from toolkit.formats.models import text

pytestmark = pytest.mark.tensorflow

Program = Callable[[Any, Path, Any], Any]


def _variables(tf: Any) -> tuple[Any, Any]:
    v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    w = tf.get_variable("w", initializer=[[1.0, 2.0], [3.0, 4.0]], use_resource=True)
    return v, w


def _files(folder: Path) -> dict[str, str]:
    """What is in a folder; of state files, what they say."""
    return {
        path.name: path.read_text().replace(str(folder), "FOLDER") if path.name in ("checkpoint", "newest") else ""
        for path in sorted(folder.iterdir())
    }


def _saved(folder: Path, session: Any, saver: Any, steps: int = 4, **options: Any) -> list[Any]:
    paths = [saver.save(session, str(folder / "m"), step, **options) for step in range(1, steps + 1)]
    return [
        [Path(path).name for path in paths], _files(folder),
        [Path(path).name for path in saver.last_checkpoints],
    ]  # fmt: skip


def max_to_keep(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(max_to_keep=2))


def keeps_all(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(max_to_keep=None)), tf.train.Saver(
        max_to_keep=0
    ).to_proto().max_to_keep


def keeps_one_of_every_hours(tf: Any, folder: Path, session: Any) -> Any:
    # each is written after the moment from which on one is kept for good
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=-1e-9)
    return _saved(folder, session, saver)


def no_meta_graph(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(max_to_keep=1), write_meta_graph=False, latest_filename="newest")


def no_state(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(max_to_keep=1), write_state=False)


def other_suffix(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(max_to_keep=2), meta_graph_suffix="graph")


def padded(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(pad_step_number=True), steps=2)


def relative(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(save_relative_paths=True), steps=2)


def sharded(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(sharded=True, max_to_keep=2))


def first_format(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(write_version=tf.train.SaverDef.V1, max_to_keep=2))


def first_format_sharded(tf: Any, folder: Path, session: Any) -> Any:
    return _saved(folder, session, tf.train.Saver(write_version=1, sharded=True, max_to_keep=2))


def step_of_a_tensor(tf: Any, folder: Path, session: Any) -> Any:
    saver = tf.train.Saver()
    path = saver.save(session, str(folder / "m"), tf.constant(7, tf.int64))
    return Path(path).name, tf.train.latest_checkpoint(str(folder)) == path


def nothing_to_save(tf: Any, folder: Path, session: Any) -> Any:
    saver = tf.train.Saver([], allow_empty=True)
    return saver.save(session, str(folder / "m")), saver.restore(session, "nowhere"), _files(folder), saver.saver_def


def recovered(tf: Any, folder: Path, session: Any) -> Any:
    first = tf.train.Saver()
    paths = [first.save(session, str(folder / "m"), step) for step in range(3)]
    saver = tf.train.Saver(max_to_keep=2)
    saver.recover_last_checkpoints([*paths, str(folder / "gone")])
    found = [Path(path).name for path in saver.last_checkpoints]
    saver.save(session, str(folder / "m"), 9)
    return found, _files(folder)


def set_without_times(tf: Any, folder: Path, session: Any) -> Any:
    first = tf.train.Saver()
    paths = [first.save(session, str(folder / "m"), step) for step in range(2)]
    saver = tf.train.Saver(max_to_keep=1)
    saver.set_last_checkpoints(paths[:1])
    saver.save(session, str(folder / "m"), 9)
    last = _files(folder)
    saver.set_last_checkpoints_with_time([(paths[1], 0.0)])
    saver.save(session, str(folder / "m"), 10)
    return last, _files(folder)


def reshaped(tf: Any, folder: Path, session: Any) -> Any:
    path = tf.train.Saver({"x": tf.global_variables()[1]}).save(session, str(folder / "m"))
    flat = tf.get_variable("flat", [4])
    tf.train.Saver({"x": flat}, reshape=True).restore(session, path)
    return session.run(flat).tolist()


def deferred(tf: Any, folder: Path, session: Any) -> Any:
    saver = tf.train.Saver(defer_build=True)
    more = tf.get_variable("more", [])
    saver.build()
    saver.build()
    session.run(more.initializer)
    path = saver.save(session, str(folder / "m"))
    return tf.train.list_variables(path)


def protos(tf: Any, folder: Path, session: Any) -> Any:
    with tf.name_scope("outer"):
        saver = tf.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=2.5)
    found = [str(saver.to_proto("outer")), str(saver.to_proto("other")), str(saver.as_saver_def())]
    again = tf.train.Saver.from_proto(saver.to_proto("outer"), "outer")
    path = again.save(session, str(folder / "m"))
    again.restore(session, path)
    return [*found, str(again.to_proto()), _files(folder)]


def tables(tf: Any, folder: Path, session: Any) -> Any:
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 0, -2, name="t")
    insert, remove = (
        table.insert(tf.constant([5, 6], tf.int64), tf.constant([50, 60], tf.int64)),
        table.erase(tf.constant([5], tf.int64)),
    )
    saver = tf.train.Saver()
    session.run(insert)
    path = saver.save(session, str(folder / "m"))
    session.run(remove)
    saver.restore(session, path)
    names = [name for name, _ in tf.train.list_variables(path)]
    return names, session.run(table.lookup(tf.constant([5, 6, 7], tf.int64))).tolist()


def partitioned(tf: Any, folder: Path, session: Any) -> Any:
    part = tf.fixed_size_partitioner(2)
    p = tf.get_variable("p", initializer=tf.reshape(tf.range(8.0), [4, 2]), partitioner=part)
    q = tf.get_variable("q", initializer=tf.range(3), partitioner=part, use_resource=True)
    session.run([each.initializer for each in [*p, *q]])
    path = tf.train.Saver({"whole": p, "v": tf.global_variables()[0], "other": list(q)}).save(
        session, str(folder / "m")
    )
    saver = tf.train.Saver([p])
    saver.save(session, str(folder / "n"))
    reader = tf.train.NewCheckpointReader(path)
    return tf.train.list_variables(path), reader.get_tensor("whole").tolist(), reader.get_tensor("other").tolist()


PROGRAMS: list[Program] = [
    max_to_keep, keeps_all, keeps_one_of_every_hours, no_meta_graph, no_state, other_suffix, padded, relative, sharded,
    first_format, first_format_sharded, step_of_a_tensor, nothing_to_save, recovered, set_without_times, reshaped,
    deferred, protos, tables, partitioned,
]  # fmt: skip


def _run(tf: Any, program: Program, folder: Path) -> Any:
    folder.mkdir()
    with tf.Graph().as_default(), tf.Session() as session:
        _variables(tf)
        session.run(tf.global_variables_initializer())
        return program(tf, folder, session)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_savers_write_what_tensorflows_write(program: Program, tmp_path: Path) -> None:
    found = _run(ours, program, tmp_path / "here")
    with node_oracle.semantics():
        wanted = _run(node_oracle.theirs(), program, tmp_path / "there")
    assert found == wanted


@pytest.mark.parametrize("options", [{}, {"sharded": True}, {"write_version": 1}], ids=str)
def test_each_reads_what_the_other_has_written(options: dict[str, Any], tmp_path: Path) -> None:
    with node_oracle.semantics():
        for name, tf, other in (("a", ours, node_oracle.theirs()), ("b", node_oracle.theirs(), ours)):
            with tf.Graph().as_default(), tf.Session() as session:
                v, w = _variables(tf)
                session.run(tf.global_variables_initializer())
                session.run([v.assign([7.0, 8.0]), w.assign([[5.0, 6.0], [7.0, 8.0]])])
                path = tf.train.Saver(**options).save(session, str(tmp_path / name))
            with other.Graph().as_default(), other.Session() as session:
                saver = other.train.import_meta_graph(str(tmp_path / name) + ".meta", import_scope="in")
                saver.restore(session, path)
                v, w = other.global_variables()
                assert v.op.name == "in/v" and w.op.name == "in/w"
                assert session.run(v).tolist() == [7.0, 8.0] and session.run(w).tolist() == [[5.0, 6.0], [7.0, 8.0]]


# -- MetaGraphs ----------------------------------------------------------------------------------------------------


def _model(tf: Any) -> Any:
    """A graph with two scopes, a loop, a queue and two savers; returns the saver of the first variables."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.device("/cpu:0"), tf.variable_scope("body"):
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        y = tf.multiply(x, v, name="y")
        with tf.control_dependencies([y]):
            z = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], name="loop")
        tf.add_to_collection("outputs", y)
        tf.add_to_collection("outputs", z.op)
        queue = tf.FIFOQueue(3, tf.float32, name="queue")
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1.0)]))
    tf.get_variable("w", [], use_resource=True, initializer=tf.zeros_initializer())
    for key, value in (("texts", "some text"), ("numbers", 3), ("floats", 2.5)):
        tf.add_to_collection(key, value)
    tf.train.Saver([v], name="first")
    return tf.train.Saver(name="second")


EXPORTS: dict[str, dict[str, Any]] = {
    "all": {},
    "scope": {"export_scope": "body"},
    "without devices": {"clear_devices": True},
    "one saver": {"clear_extraneous_savers": True},
    "few collections": {"collection_list": ["outputs", "numbers", "variables"]},
    "stripped": {"strip_default_attrs": True},
    "much": {"export_scope": "body", "clear_devices": True, "strip_default_attrs": True},
}


def _as_lines(message: Any) -> list[str]:
    """A MetaGraph without what may differ: versions, how messages order their fields."""
    found = meta_graph_pb2.MetaGraphDef.FromString(message.SerializeToString())
    lines = _described(found.graph_def)
    for key in sorted(found.collection_def):
        held = found.collection_def[key]
        kind = held.WhichOneof("kind")
        values: Any = getattr(held, str(kind)).value
        lines.append(f"collection {key} {kind}: {[_item(key, each) for each in values]}")
    shapes = [f"{n.name}: {n.attr['_output_shapes']}" for n in found.graph_def.node if "_output_shapes" in n.attr]
    ops = [op.name for op in found.meta_info_def.stripped_op_list.op]
    return [*lines, *shapes, f"{found.saver_def}", f"{ops} {found.meta_info_def.stripped_default_attrs}"]


def _described(graph_def: Any) -> list[str]:
    """Nodes; TensorFlow 2.21 writes a name for debuggers into handles."""
    return [re.sub(r'debug_name=s: "[^"]*" ', "", line) for line in node_oracle.described(graph_def)]


def _item(key: str, value: Any) -> str:
    if key not in MESSAGES or not isinstance(value, bytes):
        return repr(value)
    return text.render(MESSAGES[key][0].FromString(value))


@pytest.mark.parametrize("name", EXPORTS)
def test_meta_graphs_are_tensorflows(name: str, tmp_path: Path) -> None:
    def exported(tf: Any, path: Path) -> Any:
        with tf.Graph().as_default():
            saver = _model(tf)
            message = saver.export_meta_graph(str(path), as_text=True, **EXPORTS[name])
        assert path.exists()
        return _as_lines(message)

    with node_oracle.semantics():
        wanted = exported(node_oracle.theirs(), tmp_path / "a")
    assert not node_oracle.difference(wanted, exported(ours, tmp_path / "b"))


IMPORTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "into a scope": {"import_scope": "in"},
    "without devices": {"clear_devices": True, "import_scope": "a/b"},
    "few collections": {"restore_collections_predicate": lambda key: key in ("outputs", "variables")},
}


@pytest.mark.parametrize("name", IMPORTS)
def test_graphs_that_come_in_are_tensorflows(name: str, tmp_path: Path) -> None:
    def brought_in(tf: Any) -> Any:
        with tf.Graph().as_default():
            saver = _model(tf)
            saver.export_meta_graph(str(tmp_path / "m"))
        with tf.Graph().as_default() as graph:
            tf.constant(1, name="here")
            tf.get_variable("mine", [])
            saver = tf.train.import_meta_graph(str(tmp_path / "m"), **IMPORTS[name])
            found = {key: [str(getattr(each, "name", each)) for each in graph.get_collection(key)]
                     for key in graph.get_all_collection_keys() if key not in ("savers", "queue_runners")}  # fmt: skip
            return [*_described(graph.as_graph_def()), f"{sorted(found.items())}", f"{saver.to_proto()}"]

    with node_oracle.semantics():
        wanted = brought_in(node_oracle.theirs())
    assert not node_oracle.difference(wanted, brought_in(ours))


def _mapped(tf: Any) -> Any:
    with tf.Graph().as_default():
        _model(tf)
        message = tf.train.export_meta_graph(export_scope="body")
    with tf.Graph().as_default() as graph:
        tensor = tf.placeholder(tf.float32, [None, 2], name="given")
        with pytest.raises(ValueError, match="x"):
            tf.train.import_meta_graph(message)
        tf.train.import_meta_graph(message, import_scope="new", input_map={"$unbound_inputs_x": tensor})
        return next(iter(graph.get_operation_by_name("new/y").inputs)) is tensor, len(graph.get_operations())


def test_unbound_inputs_are_given_by_a_map() -> None:
    with node_oracle.semantics():
        assert _mapped(node_oracle.theirs())[0]
    assert _mapped(ours)[0]


# -- mistakes ------------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[Callable[[Any, Any, str], Any], str]] = {
    "no list": (lambda tf, _s, _f: tf.train.Saver(5), "a list or a dict"),
    "no variable": (lambda tf, _s, _f: tf.train.Saver({"x": tf.constant(3)}), "give variables"),
    "a number for a name": (lambda tf, _s, _f: tf.train.Saver({3: tf.global_variables()[0]}), "a text"),
    "nothing": (lambda tf, _s, _f: tf.train.Saver([]), "No variables"),
    "twice": (lambda tf, _s, _f: tf.train.Saver(tf.global_variables()[:1] * 2), "two variables would be saved as 'v'"),
    "two names": (
        lambda tf, _s, _f: tf.train.Saver(dict.fromkeys("xy", tf.global_variables()[0])), "under another name already",
    ),
    "no slices": (lambda tf, _s, _f: tf.train.Saver({"x": tf.global_variables()}), "no slice"),
    "variables for later": (
        lambda tf, _s, _f: tf.train.Saver(tf.global_variables(), defer_build=True), "leave var_list out",
    ),
    "saved before it is built": (
        lambda tf, s, f: tf.train.Saver(defer_build=True).save(s, f"{f}/m"), "call build()",
    ),
    "state file in a folder": (
        lambda tf, s, f: tf.train.Saver().save(s, f"{f}/m", latest_filename="a/b"), "is a path",
    ),
    "state file of that name": (lambda tf, s, f: tf.train.Saver().save(s, f"{f}/checkpoint"), "name of the state file"),
    "no session": (lambda tf, _s, f: tf.train.Saver().save(3, f"{f}/m"), "must be a Session"),
    "no checkpoint": (lambda tf, s, f: tf.train.Saver().restore(s, f"{f}/none"), "no checkpoint"),
    "no path": (lambda tf, s, _f: tf.train.Saver().restore(s, None), "None"),
    "no SaverDef": (lambda tf, _s, _f: tf.train.Saver(saver_def="x"), "SaverDef"),
    "an empty SaverDef": (lambda tf, _s, _f: tf.train.Saver(saver_def=tf.train.SaverDef()), "save_tensor_name"),
    "no graph": (lambda tf, _s, f: tf.train.import_meta_graph(f"{f}/none.meta"), "none.meta"),
    "times of no list": (lambda tf, _s, _f: tf.train.Saver().set_last_checkpoints_with_time(()), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_of_tensorflows_type(name: str, tmp_path: Path) -> None:
    make, said = MISTAKES[name]

    def mistake(tf: Any) -> Exception:
        with tf.Graph().as_default(), tf.Session() as session:
            _variables(tf)
            session.run(tf.global_variables_initializer())
            with pytest.raises(Exception) as raised:
                make(tf, session, str(tmp_path))
            return raised.value

    with node_oracle.semantics():
        wanted = mistake(node_oracle.theirs())
    found = mistake(ours)
    assert isinstance(found, next(kind for kind in type(wanted).__mro__ if kind.__module__ == "builtins"))
    assert said in str(found)
