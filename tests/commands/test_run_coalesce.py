"""`run --coalesce N`: many files are requests that run several in one step; each has the results of its own run."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run as graphmill
from tests import tolerance
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.garbage import postponed
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.sessions.coalescing import Coalescer

F = dtypes.float32
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ROWS = (1, 3, 2, 1, 1, 5, 0, 1, 2, 1, 1, 1)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """y = x * rate (which is 2 unless it is fed), both = x + z, text, and what has no row for each example."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    z = graph.add("Placeholder", "z", attrs={"dtype": F, "shape": Shape([None, 2])})
    two = graph.add("Const", "two", attrs={"dtype": F, "value": from_array(np.float32(2))})
    rate = graph.add("PlaceholderWithDefault", "rate", [two], attrs={"dtype": F, "shape": Shape([])})
    axes = graph.add("Const", "axes", attrs={"dtype": dtypes.int32, "value": from_array(np.int32([0, 1]))})
    fixed = graph.add("Placeholder", "fixed", attrs={"dtype": F, "shape": Shape([4, 2])})
    graph.add("Mul", "y", [x, rate], attrs={"T": F})
    graph.add("AddV2", "both", [x, z], attrs={"T": F})
    graph.add("AsString", "text", [x], attrs={"T": F})
    graph.add("Sum", "total", [x, axes], attrs={"T": F, "Tidx": dtypes.int32})
    graph.add("CheckNumerics", "checked", [x], attrs={"T": F, "message": "no number"})
    graph.add("Identity", "same", [fixed], attrs={"T": F})
    path = str(tmp_path / "model.pb")
    write_model(from_graph(graph), path)
    return path


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    """A folder of files with different numbers of examples."""
    folder = tmp_path / "in"
    folder.mkdir()
    random = np.random.default_rng(3)
    for number, rows in enumerate(ROWS):
        x, z = random.standard_normal((2, rows, 2), np.float32)
        np.savez(folder / f"r-{number:02}.npz", x=x, z=z)
    return folder


def answers(out: Path) -> list[Any]:
    """What is in the folder, in the order of the manifest."""
    told = json.loads((out / "manifest.json").read_text())
    return [dict(np.load(out / each["output"], allow_pickle=False)) for each in told["shards"]]


def by_themselves(model: str, folder: Path, tmp_path: Path, *options: str) -> list[Any]:
    """The results of a run for each file."""
    found: list[Any] = []
    for number, file in enumerate(sorted(folder.glob("*.npz"))):
        out = tmp_path / f"alone-{number}.npz"
        feeds = [f"--feed={name}={file}:{name}" for name in ("x", "z")]
        assert graphmill(["run", model, *feeds, "--out", str(out), *options]) == 0
        found.append(dict(np.load(out, allow_pickle=False)))
    return found


@pytest.mark.parametrize("most", [1, 2, 4, 16])
def test_each_request_has_the_results_of_a_run_of_its_own(
    most: int, model: str, requests: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--fetch", "y,both,text", "--feed", "rate=3.0"]
    feeds = [f"--feed={name}={requests}/*.npz" for name in ("x", "z")]
    out = tmp_path / "out"
    assert graphmill(["run", model, *feeds, "--out", str(out), "--coalesce", str(most), *options]) == 0
    told = re.search(r"12 result\(s\) are in .*: 12 computed, in (\d+) step\(s\)", capsys.readouterr().err)
    assert told is not None
    mine, theirs = answers(out), by_themselves(model, requests, tmp_path, *options)
    assert [len(each["y"]) for each in mine] == list(ROWS)
    for one, other in zip(mine, theirs, strict=True):
        assert one.keys() == other.keys()
        for label, value in other.items():
            assert one[label].dtype == value.dtype
            np.testing.assert_array_equal(one[label], value)
    # one of five examples and one of none are by themselves; a step is as full as those that wait allow
    full = sum(rows for rows in ROWS if rows <= most)
    alone = sum(rows > most for rows in ROWS) + 1
    assert -(-full // most) + alone <= int(told[1]) <= len(ROWS)


def test_steps_are_full(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(40):
        np.save(folder / f"r-{number:02}.npy", np.full((1, 2), number, np.float32))
    command = ["run", model, f"--feed=x={folder}/*.npy", "--fetch", "y", "--out", str(tmp_path / "out")]
    assert graphmill([*command, "--coalesce", "16"]) == 0
    assert "40 computed, in 3 step(s)" in capsys.readouterr().err
    assert [each["y"].tolist() for each in answers(tmp_path / "out")] == [[[2.0 * n, 2.0 * n]] for n in range(40)]


def test_a_network_with_its_variables(tmp_path: Path) -> None:
    """Steps of different sizes round differently; nothing else is different."""
    net, checkpoint = str(tmp_path / "net.meta"), str(tmp_path / "ckpt")
    assert graphmill(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", net]) == 0
    assert graphmill(["run", net, "--init", "--target", "conv1/kernel", "--save", checkpoint]) == 0
    folder = tmp_path / "in"
    folder.mkdir()
    images = np.random.default_rng(5).random((9, 1, 8, 8, 1), np.float32)
    for number, image in enumerate(images):
        np.save(folder / f"r-{number}.npy", image)
    common = ["run", net, "--checkpoint", checkpoint, "--fetch", "probabilities"]
    out = tmp_path / "out"
    assert graphmill([*common, f"--feed=x={folder}/*.npy", "--coalesce", "4", "--out", str(out)]) == 0
    for number, answer in enumerate(answers(out)):
        alone = tmp_path / "alone.npy"
        assert graphmill([*common, f"--feed=x={folder}/r-{number}.npy", "--out", str(alone)]) == 0
        # four layers of sums of at most 2^11 products
        np.testing.assert_allclose(answer["probabilities"], np.load(alone), rtol=4 * 2 * tolerance.likely(2**11))


def test_a_request_that_fails_is_named_and_the_others_are_there(
    model: str, requests: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(requests / "r-03.npz", x=np.float32([[np.nan, 1]]))
    np.savez(requests / "r-05.npz", x=np.zeros((1, 3), np.float32))
    (requests / "r-08.npz").write_bytes(b"no archive")
    out = tmp_path / "out"
    command = ["run", model, f"--feed=x={requests}/*.npz", "--fetch", "checked", "--coalesce", "8", "--out", str(out)]
    assert graphmill(command) != 0
    error = capsys.readouterr().err
    assert "3 of 12 requests failed; the first is r-03: " in error
    assert "request r-05 failed: cannot feed a value of shape [1,3] for 'x:0', which has shape [?,2]" in error
    assert "request r-08 failed: " in error
    assert len(list(out.glob("*.npz"))) == 9
    for number in (3, 5, 8):
        np.savez(requests / f"r-{number:02}.npz", x=np.ones((1, 2), np.float32))
    assert graphmill(command) == 0
    told = capsys.readouterr().err
    assert "9 of 12 requests have their results already" in told and "3 computed, in 1 step(s)" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--fetch", "total"],
            "--coalesce: 'total:0' has no axes, so the results of requests in one step could not be",
        ),
        (["--fetch", "two"], "--coalesce: 'two:0' has no axes"),
        (["--fetch", "axes"], "--coalesce: 'axes:0' has 2 as its first size, whatever is fed"),
        (["--fetch", "y", "--steps", "2"], "--steps has no meaning with --coalesce"),
        (["--fetch", "y", "--batch", "2"], "--batch has no meaning with --coalesce"),
        (["--fetch", "y", "--target", "y"], "--target has no meaning with --coalesce"),
        (["--fetch", "y", "--repeat", "2"], "--repeat has no meaning with --coalesce"),
        (["--fetch", "y", "--engine", "ray"], "--engine has no meaning with --coalesce"),
        (["--fetch", "y", "--feeds", "all.npz"], "--feeds names the arrays of one request"),
        (["--fetch", "y", "--compare", "other.pb"], "--compare runs one step of each model; --coalesce is without"),
        (["--fetch", "y", "--feed", "z=none/*.npy"], "--feed z: no file fits 'none/*.npy'"),
        (["--fetch", "y", "--feed", "rate=[1, 2]"], "--feed: cannot feed a value of shape [2] for 'rate:0'"),
        (["--fetch", "q"], "--fetch: there is no node 'q' in the graph"),
        (["--fetch", "y", "--coalesce", "0"], "--coalesce: 0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be(
    options: list[str], told: str, model: str, requests: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["run", model, f"--feed=x={requests}/*.npz", "--coalesce", "4", "--out", str(out), *options]
    assert graphmill(command) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"graphmill: error: {told}") and error.count("\n") == 1
    assert not out.exists()


def test_inputs_that_are_no_requests(
    model: str, requests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*command: str) -> str:
        assert graphmill(["run", *command]) == 2
        error = capsys.readouterr().err
        assert error.startswith("graphmill: error: ") and error.count("\n") == 1
        return error

    pattern, out = f"--feed=x={requests}/*.npz", f"--out={tmp_path / 'out'}"
    one = f"--feed=x={requests}/r-00.npz:x"
    assert "name them with --feed NAME=PATTERN" in refused(model, one, "--fetch=y", "--coalesce=4", out)
    assert "add --out DIR" in refused(model, pattern, "--fetch=y", "--coalesce=4")
    assert "standard input has no name" in refused("-", pattern, "--fetch=y", "--coalesce=4", out)
    assert "names many files; --coalesce N makes each a request" in refused(model, pattern, "--fetch=y")
    fixed = pattern.replace("x=", "fixed=")
    same = refused(model, fixed, "--fetch=same", "--coalesce=4", out)
    assert "--coalesce: 'same:0' has 4 as its first size, whatever is fed" in same
    assert not (tmp_path / "out").exists()


def test_within_a_sandbox_and_limits(model: str, requests: Path, tmp_path: Path) -> None:
    pytest.importorskip("landlock")
    out = tmp_path / "out"
    limits = ["--sandbox", "--limit", "memory=1G,time=600s"]
    command = ["run", model, f"--feed=x={requests}/*.npz", "--fetch", "y", "--coalesce", "4", "--out", str(out)]
    assert graphmill([*command, *limits]) == 0
    assert [len(each["y"]) for each in answers(out)] == list(ROWS)


def test_garbage_is_looked_for_while_requests_are_answered(
    model: str, requests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    submit = Coalescer.submit

    def watched(self: Coalescer, *values: Any) -> Any:
        seen.append(gc.isenabled())
        return submit(self, *values)

    monkeypatch.setattr(Coalescer, "submit", watched)
    with postponed():  # as `commands.main` has it
        out = str(tmp_path / "out")
        assert graphmill(["run", model, f"--feed=x={requests}/*.npz", "--fetch=y", "--coalesce=4", "--out", out]) == 0
    gc.unfreeze()
    assert seen and all(seen)
