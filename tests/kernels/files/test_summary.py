"""Summaries against TensorFlow: equal messages, pictures compared pixel by pixel."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests import tolerance
from tests.kernels.op_suite import FLOATS, INTS, Case, check, run_ours, run_tensorflow, sample, special
from tests.kernels.strings.test_string import s
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

BAD = {"error": "INVALID_ARGUMENT"}


def cases() -> Iterator[Case]:
    for dtype in (*FLOATS, *INTS):
        yield Case("ScalarSummary", [s("loss"), sample(dtype)])
        yield Case("ScalarSummary", [s("a", "b"), sample(dtype, (2,))])
        for shape in ((), (7,), (3, 4), (0,), (1000,)):
            yield Case("HistogramSummary", [s("h"), sample(dtype, shape, -100, 100)])
    wide = np.concatenate([np.logspace(-14, 22, 300), -np.logspace(-14, 22, 200), [0, 0, 1e-12, 1.7e308]])
    yield Case("HistogramSummary", [s("wide"), wide])
    yield Case("ImageSummary", [s("i"), sample("uint8", (2, 4, 5, 3), 0, 255)], graph=True)
    for channels, low in ((1, 0), (3, 0), (4, 0), (1, -3), (3, -9)):
        yield Case(
            "ImageSummary", [s("i"), sample("float32", (2, 4, 5, channels), low, 7)], {"max_images": 1}, graph=True
        )
    awkward = np.float32([[[np.nan, 1, 2], [0, np.inf, 1], [0, 0, 0]]])[..., None]
    yield Case("ImageSummary", [s("nan"), np.concatenate([awkward] * 3, axis=-1)], graph=True)
    yield Case("ImageSummary", [s("zero"), np.zeros((1, 2, 2, 1), np.float32)], graph=True)
    for shape in ((2, 50), (2, 50, 1), (1, 30, 2)):
        yield Case(
            "AudioSummary",
            [s("a"), sample("float32", shape, -1.1, 1.1)],
            {"sample_rate": 8000.0},
            graph=True,
            producer=14,
        )
        yield Case("AudioSummaryV2", [s("a"), sample("float32", shape, -1, 1), np.float32(44100)], {"max_outputs": 1})
    one = run_ours(Case("ScalarSummary", [s("a"), np.float32(1)]))[0]
    two = run_ours(Case("ScalarSummary", [s("b"), np.float32(2)]))[0]
    yield Case("MergeSummary", [[one, two]])
    for tensor in (sample("float32", (2, 3)), s("x", "y"), np.int64(4)):
        yield Case("TensorSummaryV2", [s("t"), tensor, s(b"\n\x07\n\x05hello")])
    yield Case("ScalarSummary", [s("a", "b"), sample("float32", (3,))], **BAD)
    yield Case("HistogramSummary", [s("h"), np.float32([1, np.nan])], **BAD)
    yield Case("HistogramSummary", [s("h"), np.float32([1, np.inf])], **BAD)
    yield Case("ImageSummary", [s("i"), sample("uint8", (4, 5, 3))], graph=True, **BAD)
    yield Case("ImageSummary", [s("i"), sample("uint8", (1, 4, 5, 2))], graph=True, **BAD)
    yield Case("MergeSummary", [[one, one]], **BAD)
    yield Case("MergeSummary", [[one, s(b"\xff\xff")]], **BAD)


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_summary(case: Case, tf: ModuleType) -> None:
    if case.error:
        check(case)
        return
    parse = tf.compat.v1.Summary.FromString
    mine, expected = (parse(run(case)[0].item()) for run in (run_ours, run_tensorflow))
    for ours, theirs in zip(mine.value, expected.value, strict=True):
        if theirs.HasField("image"):  # the files differ in compression, not in pixels
            pixels = [pixels_of(v.image.encoded_image_string) for v in (ours, theirs)]
            np.testing.assert_array_equal(*pixels)
            ours.image.encoded_image_string = theirs.image.encoded_image_string = b""
        if theirs.HasField("tensor"):
            np.testing.assert_array_equal(*(tf.make_ndarray(v.tensor) for v in (ours, theirs)))
            assert ours.tensor.dtype == theirs.tensor.dtype
            ours.tensor.CopyFrom(theirs.tensor)
        if theirs.HasField("histo"):
            _set_sums(ours.histo, theirs.histo, np.asarray(case.inputs[1]).astype(np.float64).ravel())
    assert mine == expected


def _set_sums(ours: Any, theirs: Any, numbers: Any) -> None:
    """Hold sums to what rounding explains, for numpy adds pairwise; then let them be the same."""
    with np.errstate(over="ignore"):
        parts = {"sum": np.abs(numbers), "sum_squares": np.square(numbers)}
    for field, sizes in parts.items():
        a, b = getattr(ours, field), getattr(theirs, field)
        if np.isfinite(b):
            tolerance.assert_within(a, b, 2 * tolerance.likely(len(sizes), np.float64) * sizes.sum())
            setattr(ours, field, b)


def pixels_of(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)))


def test_writer(tmp_path: Path, tf: ModuleType) -> None:
    """An event file written by the writer ops is read by TensorFlow."""
    from tests.kernels.step import FakeStep
    from toolkit.kernels.resources.handles import ResourceHandle

    step = FakeStep()
    handle = ResourceHandle("", "w", "SummaryWriter")
    number = np.int64(7)
    run = lambda op, inputs, attrs=None: run_ours(Case(op, [handle, *inputs], attrs or {}), step=step)  # noqa: E731
    run("CreateSummaryFileWriter", [s(str(tmp_path)), np.int32(1), np.int32(1000), s(".end")])
    run("WriteScalarSummary", [number, s("loss"), np.float32(0.5)])
    run("WriteHistogramSummary", [number, s("h"), np.float32([1, 2])])
    run("WriteImageSummary", [number, s("i"), sample("uint8", (1, 2, 2, 3)), np.uint8([255, 0, 0, 255])])
    run("WriteAudioSummary", [number, s("a"), sample("float32", (1, 9), -1, 1), np.float32(8000)])
    run("WriteSummary", [number, np.int32([1, 2]), s("t"), s("")])
    run("WriteRawProtoSummary", [number, run_ours(Case("ScalarSummary", [s("raw"), np.float32(1)]))[0]])
    run("WriteGraphSummary", [number, s(b"\n\x03\n\x01x")])
    run("ImportEvent", [s(tf.compat.v1.Event(step=7, file_version="of another").SerializeToString())])
    with pytest.raises(InvalidArgumentError, match="is not an Event message"):
        run("ImportEvent", [s(b"\xff\xff")])
    two = np.array([b"", b""], object)
    for op, inputs in (
        ("WriteSummary", [number, np.int32([1, 2]), s("t"), two]),
        ("WriteScalarSummary", [np.int64([7, 8]), s("loss"), np.float32(0.5)]),
        ("WriteGraphSummary", [number, two]),
        ("ImportEvent", [two]),
    ):
        with pytest.raises(InvalidArgumentError, match="must be a scalar"):
            run(op, inputs)
    run("FlushSummaryWriter", [])
    run("CloseSummaryWriter", [])
    (file,) = tmp_path.iterdir()
    assert file.name.endswith(".end")
    events = list(tf.compat.v1.train.summary_iterator(str(file)))
    tags = [value.tag for event in events for value in event.summary.value]
    assert tags == ["loss", "h", "i/image/0", "a/audio/0", "t", "raw"]
    assert events[-2].graph_def == b"\n\x03\n\x01x"
    assert events[-1].file_version == "of another"
    assert {event.step for event in events[1:]} == {7}


def test_special_values_are_refused() -> None:
    with pytest.raises(Exception, match="Nan in summary histogram"):
        run_ours(Case("HistogramSummary", [s("h"), special("float32")]))
