"""OUT_OF_RANGE of a wrong index is an error of `run`; that of an input without further elements ends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from commands.main import run as graphmill
from toolkit import tensorflow as tf
from toolkit.formats.models.model import from_graph, write_model


def _crop(index: tf.Tensor) -> tf.Tensor:
    """A crop of the only image there is, number 0."""
    return tf.image.crop_and_resize(tf.ones([1, 4, 4, 1]), [[0.0, 0.0, 1.0, 1.0]], index, [2, 2])


def _in_a_function(index: tf.Tensor) -> tf.Tensor:
    @tf.function
    def crop(given: tf.Tensor) -> tf.Tensor:
        return _crop(given)

    return crop(index)


@pytest.mark.parametrize("call", [_crop, _in_a_function])
@pytest.mark.parametrize("steps", [[], ["--steps", "3"]])
def test_an_index_that_is_wrong(
    call: Callable[[tf.Tensor], tf.Tensor], steps: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tf.Graph().as_default() as graph:
        tf.identity(call(tf.placeholder(tf.int32, [1], name="i")), name="y")
    write_model(from_graph(graph.core), tmp_path / "m.pb")
    out = tmp_path / "out.npz"
    command = ["run", str(tmp_path / "m.pb"), "--fetch", "y", "--out", str(out), *steps]
    assert graphmill([*command, "--feed", "i=[1]"]) == 3
    assert "box_index has values outside [0, 1)" in capsys.readouterr().err
    assert not out.exists()
    assert graphmill([*command, "--feed", "i=[0]"]) == 0
    assert out.exists()


def test_an_input_that_ends(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next(name="y")
    write_model(from_graph(graph.core), tmp_path / "m.pb")
    out = tmp_path / "out.json"
    assert graphmill(["run", str(tmp_path / "m.pb"), "--fetch", "y", "--out", str(out), "--steps", "5"]) == 0
    assert "[0, 1, 2]" in out.read_text()
