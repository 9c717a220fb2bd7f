"""What runs once before the steps: initialisers that a graph lists (`--init`), and what a user names (`--init-op`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.main import run as graphmill


def fetched(file: str, out: Path, *more: str) -> Any:
    assert graphmill(["run", file, "-q", "--out", str(out), *more]) == 0
    return json.loads(out.read_text())


@pytest.fixture
def iterator(tf: Any, tmp_path: Path) -> str:
    """next: 0, limit, 2 limit, ... of an iterator that the op `begin` makes, for the fed `count` of elements."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        count = v1.placeholder(tf.int64, [], "count")
        elements = v1.data.make_initializable_iterator(v1.data.Dataset.range(count).map(lambda x: x * 10))
        tf.identity(elements.get_next(), "next")
        tf.group(elements.initializer, name="begin")
        v1.train.export_meta_graph(str(tmp_path / "it.meta"), graph=graph)
    return str(tmp_path / "it.meta")


@pytest.mark.tensorflow
def test_an_iterator_is_made_before_the_steps(
    iterator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed = ["--feed", "count=4", "--fetch", "next"]
    out = tmp_path / "o.json"
    assert fetched(iterator, out, *feed, "--init-op", "begin")["next"] == 0
    assert fetched(iterator, out, *feed, "--init-op", "begin", "--steps", "3")["next"] == [0, 10, 20]
    capsys.readouterr()
    assert graphmill(["run", iterator, *feed]) == 3
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.endswith("; run it first with --init-op MakeIterator\n"), told
    for more in ([], ["--init"], ["--init-op", "begim"]):
        assert graphmill(["run", iterator, "--feed", "count=4", "--fetch", "next", *more]) in (2, 3)
    assert "--init-op: there is no operation 'begim' in the graph; did you mean 'begin'" in capsys.readouterr().err


@pytest.mark.tensorflow
def test_a_model_is_compared_with_its_iterators(iterator: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["run", iterator, "--compare", iterator, "--feed", "count=4", "--fetch", "next"]
    assert graphmill(both) == 3
    assert graphmill([*both, "--init-op", "begin"]) == 0
    assert graphmill(["run", iterator, "--explain", "--fetch", "next", "--init-op", "begin"]) == 2
    assert "--explain and --init-op do not go together: nothing is run" in capsys.readouterr().err


@pytest.mark.tensorflow
def test_local_variables_alone(tf: Any, tmp_path: Path) -> None:
    """What string_input_producer counts its epochs in; a graph without other variables."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        names = v1.train.string_input_producer(["one", "two"], num_epochs=2, shuffle=False)
        tf.identity(names.dequeue(), "name")
        v1.train.export_meta_graph(str(tmp_path / "names.meta"), graph=graph)
    out = tmp_path / "o.json"
    found = fetched(str(tmp_path / "names.meta"), out, "--init", "--fetch", "name", "--steps", "9")
    assert found["name"] == ["one", "two", "one", "two"]


@pytest.mark.tensorflow
def test_what_fills_a_queue_lacks_its_variable(tf: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The thread that fills the queue fails, not the step that waits for it."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        names = v1.train.string_input_producer(["one", "two"], num_epochs=1, shuffle=False)
        tf.identity(names.dequeue(), "name")
        v1.train.export_meta_graph(str(tmp_path / "names.meta"), graph=graph)
    command = ["run", str(tmp_path / "names.meta"), "--fetch", "name"]
    assert graphmill(command) == 3
    told = capsys.readouterr().err
    hint = "; give the variables values with --init, --checkpoint PREFIX or --checkpoint-dir DIR"
    assert told.count("\n") == 1 and told.count(hint) == 1, told
    assert graphmill([*command, "--init"]) == 0


def test_nothing_to_initialise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.pbtxt").write_text('node { name: "a" op: "NoOp" }')
    assert graphmill(["run", str(tmp_path / "a.pbtxt"), "--init", "--target", "a"]) == 2
    assert "--init: the graph lists no init op and no variables to initialise; name what has to run first with " in (
        capsys.readouterr().err
    )
    assert graphmill(["run", str(tmp_path / "a.pbtxt"), "--init-op", "a", "--target", "a"]) == 0


def test_initialised_then_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the saver does not restore has its first value; what it does, the checkpoint's."""
    from toolkit import client as gm
    from toolkit.client.metagraphs.export import to_meta_graph
    from toolkit.formats.models.model import from_meta_graph, write_model

    monkeypatch.chdir(tmp_path)
    with gm.Graph().as_default() as graph:
        kept = gm.get_variable("kept", initializer=gm.constant([1.0]))
        fresh = gm.get_variable("fresh", initializer=gm.constant([2.0]))
        kept.assign(gm.constant([7.0]), name="change")
        gm.identity(kept + fresh, name="sum")
        saver = gm.train.Saver([kept])
        gm.global_variables_initializer()
        write_model(from_meta_graph(to_meta_graph(graph, saver_def=saver.saver_def)), "m.meta")
    assert graphmill(["run", "m.meta", "--init", "--target", "change", "--save", "ckpt"]) == 0
    assert graphmill(["run", "m.meta", "--checkpoint", "ckpt", "--fetch", "sum"]) == 3  # fresh has no value
    assert fetched("m.meta", tmp_path / "o.json", "--init", "--checkpoint", "ckpt", "--fetch", "sum")["sum"] == [9]
