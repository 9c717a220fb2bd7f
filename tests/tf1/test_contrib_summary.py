"""tf.contrib.summary: what steps write is what TensorBoard reads, at the steps at which it should be written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.formats.records.events import read_events

summary = tf.contrib.summary


def accumulated(folder: Path) -> Any:
    """What TensorBoard has read from a folder."""
    accumulator: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()
    return found


def test_all_kinds_are_read_by_tensorboard(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        writer = summary.create_file_writer(str(tmp_path), flush_millis=1000)
        metadata = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name="mine"))
        with writer.as_default(), summary.always_record_summaries(), tf.name_scope("outer"):
            summary.scalar("loss", tf.cast(step, tf.float32) * 0.5)
            summary.scalar("part", 3, family="parts", step=7)
            summary.histogram("spread", tf.constant(np.arange(10.0)))
            summary.image("picture", np.full([2, 3, 4, 3], 0.5, "f"), max_images=1)
            summary.audio("sound", np.zeros([1, 20, 1], "f"), 100.0, 1)
            summary.generic("any", [[1, 2]], metadata)
            session.run(tf.global_variables_initializer())
            summary.initialize(graph=tf.get_default_graph(), session=session)
        assert len(summary.all_summary_ops()) == 6
        count = tf.assign_add(step, 1)
        for _ in range(3):
            assert session.run(summary.all_summary_ops()) == [True] * 6
            session.run(count)
        session.run(writer.close())
    found = accumulated(tmp_path)
    tags = found.Tags()
    assert sorted(tags["scalars"]) == ["outer/loss", "parts/outer/parts/part"]
    assert [(event.step, event.value) for event in found.Scalars("outer/loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert [(event.step, event.value) for event in found.Scalars("parts/outer/parts/part")] == [(7, 3.0)] * 3
    histogram = found.Histograms("outer/spread")[0].histogram_value
    assert (histogram.num, histogram.sum, histogram.min, histogram.max) == (10, 45, 0, 9)
    assert {(image.width, image.height) for image in found.Images("outer/picture/image")} == {(4, 3)}
    assert tags["audio"] == ["outer/sound/audio"]
    assert tf.make_ndarray(found.Tensors("outer/any")[0].tensor_proto).tolist() == [[1, 2]]
    assert {node.name for node in found.Graph().node} >= {"global_step", "outer/loss"}


def written_steps(folder: Path) -> list[int]:
    files = sorted(folder.glob("*"))
    return [event.step for file in files for event in read_events(str(file)) if event.summary.value]


@pytest.mark.parametrize(("every", "steps"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3])])
def test_every_so_many_steps(tmp_path: Path, every: int, steps: list[int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        writer = summary.create_file_writer(str(tmp_path))
        with writer.as_default(), summary.record_summaries_every_n_global_steps(every):
            done = summary.scalar("x", 1.0)
        count = tf.assign_add(step, 1)
        session.run([tf.global_variables_initializer(), summary.summary_writer_initializer_op()])
        for at in range(5):
            assert session.run(done) == (at in steps)
            session.run(count)
        session.run(writer.flush())
    assert written_steps(tmp_path) == steps


def test_nothing_is_written_unless_somebody_says_so(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        assert summary.scalar("x", 1.0).type == "NoOp"  # there is no writer
        writer = summary.create_file_writer(str(tmp_path))
        with writer.as_default():
            silent = summary.scalar("x", 1.0)
            assert not session.run(summary.should_record_summaries())
            with summary.always_record_summaries():
                assert session.run(summary.should_record_summaries())
                with summary.never_record_summaries():
                    more = summary.scalar("x", 1.0)
        session.run([tf.global_variables_initializer(), summary.summary_writer_initializer_op()])
        assert session.run([silent, more]) == [False, False]
        session.run(writer.close())
    assert written_steps(tmp_path) == []


def test_events_are_written_as_they_are(tmp_path: Path) -> None:
    event = tf.Event(step=5, wall_time=3.0, summary=tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=2.0)]))

    def write() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            writer = summary.create_file_writer(str(tmp_path), name="mine", max_queue=1, filename_suffix=".own")
            writer.set_as_default()
            session.run(summary.summary_writer_initializer_op())
            session.run(summary.import_event(event.SerializeToString()))
            session.run(summary.flush())

    with ThreadPoolExecutor(1) as threads:  # what is the default of a thread stays it
        threads.submit(write).result()
    (file,) = tmp_path.glob("*.own")
    assert event in list(read_events(str(file)))


def test_a_writer_that_leads_nowhere() -> None:
    with tf.Graph().as_default():
        writer = summary.create_file_writer(None)
        with writer.as_default(), summary.always_record_summaries():
            assert summary.scalar("x", 1.0).type == "NoOp"
        assert writer.init() is None and writer.flush() is None and writer.close() is None
        assert summary.flush().type == "NoOp"
        assert summary.graph(tf.placeholder(tf.string)).type == "NoOp"


def test_mistakes(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        with pytest.raises(RuntimeError, match="no default writer"):
            summary.initialize()
        with pytest.raises(RuntimeError, match="no default writer"):
            summary.import_event("")
        with summary.create_file_writer(str(tmp_path)).as_default():
            with pytest.raises(ValueError, match="no default session"):
                summary.initialize()
            with pytest.raises(TypeError, match="expected a string tensor"):
                summary.graph(tf.get_default_graph())


def test_folders() -> None:
    assert summary.eval_dir("/model") == "/model/eval"
    assert summary.eval_dir("/model", "test") == "/model/eval_test"
    assert summary.create_summary_file_writer(None).flush() is None


def test_descriptions_of_nodes() -> None:
    node = tf.NodeDef(op="TensorSummary")
    node.attr["description"].s = b'{"typeHint": "scalar"}'
    assert tf.summary.get_summary_description(node) == tf.summary.SummaryDescription(type_hint="scalar")
    with pytest.raises(ValueError, match="expected a node of TensorSummary, got one of Add"):
        tf.summary.get_summary_description(tf.NodeDef(op="Add"))
