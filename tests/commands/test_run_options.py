"""Options of `run` that would be without effect, contradict each other or name the wrong kind of thing."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run as graphmill
from toolkit.cluster.ray import kind as ray_kind
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.jobs import job, option_checks
from toolkit.runtime.jobs.options import OPTIONS, RunOptions, on_command_line
from toolkit.runtime.shards import requests

F = dtypes.float32
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


@pytest.fixture
def model(tmp_path: Path) -> str:
    """out/sum = x + y, weighted/prod = x * w; and a placeholder `rate` that is a scalar."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    y = graph.add("Placeholder", "y", attrs={"dtype": F, "shape": Shape([None, 2])})
    w = graph.add("Placeholder", "w", attrs={"dtype": F, "shape": Shape([2])})
    rate = graph.add("Placeholder", "rate", attrs={"dtype": F, "shape": Shape([])})
    graph.add("AddV2", "out/sum", [x, y], attrs={"T": F})
    graph.add("Mul", "weighted/prod", [x, w], attrs={"T": F})
    graph.add("Mul", "slow/scaled", [x, rate], attrs={"T": F})
    graph.add("NoOp", "nothing")
    path = str(tmp_path / "model.pb")
    write_model(from_graph(graph), path)
    return path


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("digits") / "digits.meta")
    assert graphmill(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", path]) == 0
    return path


def refused(capsys: pytest.CaptureFixture[str], command: list[str]) -> str:
    capsys.readouterr()
    assert graphmill(command) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("graphmill: error: ") and shown.err.count("\n") == 1, shown.err
    return shown.err


def test_soft_placement_is_told_and_can_be_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    graph.add("Neg", "y", [x], attrs={"T": F}, device="/device:GPU:0")
    path = str(tmp_path / "model.pb")
    write_model(from_graph(graph), path)
    command = ["run", path, "--feed", "x=[1,2]", "--fetch", "y"]
    line = (
        "soft placement: Neg 'y' asked for /device:GPU:0 and runs on /job:localhost/replica:0/task:0/device:CPU:0: "
        "there is no such device"
    )
    assert graphmill([*command, "-v"]) == 0
    assert line in capsys.readouterr().err
    assert graphmill(command) == 0
    assert capsys.readouterr().err == ""
    assert graphmill([*command, "--explain"]) == 0
    assert line in capsys.readouterr().out
    for more in ([], ["--explain"], ["--devices", "CPU=2"]):
        told = refused(capsys, [*command, "--no-soft-placement", *more])
        assert "node 'y': no device fits /device:GPU:0; the cluster has" in told


@pytest.mark.parametrize("field", OPTIONS)
def test_each_option_arrives_in_its_field(field: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared once: what is not given has the field's default."""
    arrived: list[RunOptions] = []

    def run_model(model: object, options: RunOptions, **others: object) -> None:
        arrived.append(options)
        raise UsageError("that is all")

    monkeypatch.setattr(job, "run_model", run_model)
    monkeypatch.setattr(requests, "answer", lambda _model, _tags, options, *_: run_model(None, options))
    monkeypatch.setattr(ray_kind, "running", lambda target, *_: nullcontext(target))  # no Ray is started for it
    monkeypatch.setattr(option_checks, "check_options", lambda options, comparing: None)
    given: dict[Any, tuple[list[str], Any]] = {
        bool: ([], True), int | None: (["7"], 7), float | None: (["7"], 7.0), str: (["a"], "a"),
        str | None: (["a"], "a"), list[str] | None: (["a"], ["a"]), tuple[str, str] | None: (["a", "b"], ("a", "b")),
    }  # fmt: skip
    kind = next(kind for name, _, kind, _ in on_command_line() if name == field)
    words, value = (["CPU=2"], {"CPU": 2}) if field == "devices" else given[kind]
    fetch = [] if field == "fetches" else ["--fetch", "x"]
    assert graphmill(["run", model, *fetch, OPTIONS[field].flag, *words]) == 2
    expected = RunOptions(**{"fetches": ["x"], field: value})
    expected.limits = arrived[0].limits
    expected.named_files = []
    assert arrived == [expected]


def test_what_is_written_is_known_by_its_option() -> None:
    options = RunOptions(dump=("x*", "dumps"), trace="t.json", save="m", summaries="logs")
    assert options.written("folder") == {"--summaries": "logs", "--dump": "dumps"}
    assert options.written("file") == {"--trace": "t.json"} and options.written("prefix") == {"--save": "m"}


X, Y = ["--feed", "x=[[1,2]]"], ["--feed", "y=[[3,4]]"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--save-steps", "5"], "--save-steps is without effect here: say where to save with --checkpoint-dir DIR"),
        (["--save-secs", "5"], "--save-secs is without effect here"),
        (["--keep", "0"], "--keep is without effect here"),
        (["--keep-every-n-hours", "1"], "--keep-every-n-hours is without effect here"),
        (["--summary-steps", "5"], "--summary-steps is without effect here: say where to write with --summaries"),
        (["--shuffle"], "--shuffle is without effect here: add --batch B"),
        (["--epochs", "2"], "--epochs is without effect here: add --batch B"),
        (["--batch", "1", "--seed", "2"], "--seed is without effect here"),
        (["--warmup", "3"], "--warmup is without effect here: add --repeat R"),
        (["--profile-steps", "3"], "--profile-steps is without effect here"),
        (["--repeat", "2", "--steps", "3"], "--repeat and --steps do not go together"),
        (["--repeat", "2", "--trace", "t.json"], "what is timed is not looked into; --steps N runs N steps that are"),
        (["--stats", "json", "--save", "m"], "--repeat and --save do not go together"),
        (["--checkpoint-dir", "d", "--save-steps", "1", "--save-secs", "1"], "--save-steps and --save-secs do not go"),
        (["--rtol", "1"], "add --compare OTHER"),
        (["--bisect"], "add --compare OTHER"),
        (["--nan-guard", "--target", "nothing"], None),
        (["--devices", "TPU=2"], "--devices TPU=2: there are no kernels for TPU here; GPU=N takes the machine's GPUs"),
        (["--gpu-memory-limit", "2G"], "--gpu-memory-limit is without effect here: say on which GPUs"),
        (["--deterministic"], "--deterministic is without effect here: say on which GPUs to run with --devices GPU=N"),
        (["--gpu-memory-limit", "2.5"], "--gpu-memory-limit: '2.5' is no amount of memory; expected bytes, as 8G"),
        (["--devices", "CPU=0"], "there is always one CPU"),
        (["--feed", "x=[[5,6]]"], "'x' is fed twice"),
        (["--feed", "x:0=[[5,6]]"], "'x:0' is fed twice, as 'x' and as 'x:0'"),
        (["--out", "r.txt"], "r.txt: arrays are written to .npz, .npy or .json files"),
        (["--batch", "2"], "--batch 2 must be between 1 and the 1 examples"),
    ],
)  # fmt: skip
def test_mistakes_are_told(
    model: str, more: list[str], told: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    command = ["run", model, "--fetch", "out/sum", *X, *Y, *more]
    if told is None:
        assert graphmill(command) == 0
    else:
        assert told in refused(capsys, command)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.pb"]


def test_nan_guard_and_patience_need_something_to_watch(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in (["--nan-guard"], ["--patience", "2"]):
        assert f"{flag[0]} watches" in refused(capsys, ["run", model, "--target", "nothing", "--steps", "2", *flag])


def test_compare_refuses_what_it_would_ignore(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", model, "--compare", model, "--fetch", "out/sum", *X, *Y]
    assert graphmill(command) == 0
    assert "--steps is without effect there" in refused(capsys, [*command, "--steps", "2"])
    assert "--profile is without effect there" in refused(capsys, [*command, "--profile"])


def test_compare_names_the_model_that_fails(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = str(tmp_path / "other.pb")
    assert graphmill(["prune", model, "--fetch", "x", "--fetch", "y", "-o", other]) == 0
    for pair in ([model, "--compare", other], [other, "--compare", model]):
        told = refused(capsys, ["run", *pair, "--fetch", "out/sum", *X, *Y])
        assert f"{other}: there is no node 'out/sum'" in told


def test_two_files_of_results_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = str(tmp_path / "a.npz"), str(tmp_path / "b.npz")
    np.savez(a, x=np.arange(3.0), y=np.ones(2))
    np.savez(b, x=np.arange(3.0), y=np.array([1.0, 1.5]))
    assert graphmill(["run", a, "--compare", a]) == 0
    assert graphmill(["run", a, "--compare", b]) == 1
    assert "y: 1 of 2 elements differ (max abs 0.5" in capsys.readouterr().out
    assert graphmill(["run", a, "--compare", b, "--atol", "0.6"]) == 0


@pytest.mark.parametrize(
    ("flag", "name", "told"),
    [
        ("--save", "folder", "--save wants a prefix, and 'folder' is a folder; write --save folder/model.ckpt"),
        ("--save", "new/", "--save wants a prefix, and 'new/' is a folder; write --save new/model.ckpt"),
        ("--out", "folder", "folder: is a folder"),
        ("--trace", "folder", "--trace wants a file, and 'folder' is a folder"),
        ("--measure", "folder", "--measure wants a file, and 'folder' is a folder"),
        ("--out", "missing/a.npz", "missing/a.npz: there is no folder 'missing'"),
        ("--trace", "missing/t.json", "missing/t.json: there is no folder 'missing'"),
        ("--checkpoint-dir", "file", "--checkpoint-dir wants a folder, and 'file' is a file"),
        ("--summaries", "file", "--summaries wants a folder, and 'file' is a file"),
        ("--dump-stages", "file", "--dump-stages wants a folder, and 'file' is a file"),
        ("--hook", "folder", "folder: is a folder"),
        ("--feeds", "folder", "folder: "),
    ],
)
def test_folders_and_files_in_the_wrong_place(
    model: str, flag: str, name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    assert told in refused(capsys, ["run", model, "--fetch", "out/sum", *X, *Y, flag, name])
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("flag", ["--out", "--trace", "--measure"])
def test_places_are_checked_before_anything_runs(
    model: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "missing" / "a.npz")
    told = refused(capsys, ["run", model, "--fetch", "out/sum", *X, *Y, "--save", str(tmp_path / "m"), flag, target])
    assert "there is no folder" in told
    assert [path.name for path in tmp_path.iterdir()] == ["model.pb"]


def test_folders_as_feeds(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is a folder; name an array file" in refused(capsys, ["run", model, "--feed", f"x={tmp_path}"])
    (tmp_path / "d.tfrecord").mkdir()
    feed = f"x={tmp_path / 'd.tfrecord'}:x"
    assert "is a folder; name the files in it" in refused(capsys, ["run", model, "--feed", feed])


def test_inputs_of_different_length(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "d.npz", x=np.ones((4, 2), np.float32), y=np.ones((3, 2), np.float32), w=np.ones(2, np.float32))
    feed = {name: ["--feed", f"{name}={tmp_path / 'd.npz'}:{name}"] for name in "xyw"}
    told = refused(capsys, ["run", model, "--fetch", "out/sum", *feed["x"], *feed["y"], "--batch", "2"])
    assert "4 of 'x:0', 3 of 'y:0'" in told
    # a placeholder that says how long it is takes the whole array, and a scalar is no array of examples
    scalar = ["--feed", "rate=3"]
    command = ["run", model, *feed["x"], "--batch", "1", "--out", str(tmp_path / "o.npz")]
    assert graphmill([*command, "--fetch", "weighted/prod", *feed["w"]]) == 0
    assert np.load(tmp_path / "o.npz")["weighted/prod"].shape == (4, 2)
    assert graphmill([*command, "--fetch", "slow/scaled", *scalar]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "o.npz")["slow/scaled"], np.full((4, 2), 3.0))


def test_repeat_alone_says_how_long_it_took(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert graphmill(["run", model, "--fetch", "out/sum", *X, *Y, "--repeat", "3"]) == 0
    shown = capsys.readouterr()
    assert "3 step(s): median " in shown.err and "out/sum" in shown.out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("1,2\n3,x\n", "t.csv:2: 'x' is not a number"),
        ("a,b\n1,2\n3,\n", "t.csv:3: a cell is empty"),
        ("a,b\n1,2\n3\n", "t.csv:3: a row of 1 value(s) after rows of 2"),
        ("", "t.csv: holds no rows"),
    ],
)
def test_csv_files_that_do_not_fit(
    model: str, content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert told in refused(capsys, ["run", model, "--fetch", "out/sum", "--feed", f"x={tmp_path / 't.csv'}", *Y])


def test_csv_headers_and_nan(model: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,nan\n3,-inf\n")
    out = tmp_path / "o.npz"
    feeds = ["--feed", f"x={tmp_path / 't.csv'}", "--feed", "y=[[0, nan], [+inf, 1]]"]
    assert graphmill(["run", model, "--fetch", "out/sum", *feeds, "--out", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out)["out/sum"], [[1, np.nan], [np.inf, -np.inf]])


def test_strings_keep_the_word_nan(tmp_path: Path) -> None:
    from toolkit.formats.arrays.given import read_array

    assert read_array('["nan", "inf"]').tolist() == [b"nan", b"inf"]
    np.testing.assert_array_equal(read_array("[-Infinity, NaN, inf]"), [-np.inf, np.nan, np.inf])


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["--fetch", "sum"], "there is no node 'sum' in the graph; did you mean 'out/sum'?"),
        (["--fetch", "weighted"], "there is no node 'weighted' in the graph; did you mean 'weighted/prod'?"),
        (["--fetch", "SLOW/scaled:0"], "did you mean 'slow/scaled'?"),
        (["--fetch", "prdo"], "did you mean 'weighted/prod'?"),
        (["--fetch", "nothing"], "'nothing' is an operation without outputs; run it with --target nothing"),
        (["--target", "noting"], "there is no operation 'noting' in the graph; did you mean 'nothing'?"),
        (["--fetch", "out/sum:4"], "there is no tensor 'out/sum:4'"),
        (["--fetch", "out/sum", "--feed", "scaled=1"], "nothing named 'scaled' to feed; did you mean 'slow/scaled'?"),
    ],
)  # fmt: skip
def test_names_that_were_meant(model: str, option: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, ["run", model, *X, *Y, *option])


def test_uninitialised_variables(digits: str, capsys: pytest.CaptureFixture[str]) -> None:
    hint = "; give the variables values with --init, --checkpoint PREFIX or --checkpoint-dir DIR"
    for more in ([], ["--repeat", "2"], ["--tokens"]):
        capsys.readouterr()
        assert graphmill(["run", digits, "--fetch", "conv1/kernel", *more]) == 3
        told = capsys.readouterr().err
        assert "conv1/kernel" in told and told.rstrip().endswith(hint), told


def test_nothing_to_do_saves_nothing(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = SAMPLES / "digits.npz"
    command = [
        "run", digits, "--target", "train", "--feed", f"x={data}:x_train", "--feed", f"y={data}:y_train",
        "--batch", "16", "--steps", "2", "--checkpoint-dir", str(tmp_path / "ckpt"),
    ]  # fmt: skip
    assert graphmill(command) == 0
    assert "saved " in capsys.readouterr().err
    files = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "ckpt").iterdir()}
    assert graphmill(command) == 0
    told = capsys.readouterr().err
    assert "already at step 2; nothing to do" in told and "saved" not in told
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "ckpt").iterdir()} == files


def test_a_checkpoint_to_start_from(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--checkpoint starts a folder that has none; afterwards the folder's own goes first."""
    data = SAMPLES / "digits.npz"
    command = [
        "run", digits, "--target", "train", "--feed", f"x={data}:x_train", "--feed", f"y={data}:y_train",
        "--batch", "16",
    ]  # fmt: skip
    assert graphmill([*command, "--steps", "3", "--checkpoint-dir", str(tmp_path / "a")]) == 0
    start = ["--checkpoint", str(tmp_path / "a"), "--checkpoint-dir", str(tmp_path / "b")]
    capsys.readouterr()
    assert graphmill([*command, *start, "--steps", "5"]) == 0
    assert f"restored {tmp_path / 'a'}/model.ckpt-3 at step 3" in capsys.readouterr().err
    assert graphmill([*command, *start, "--steps", "6"]) == 0
    assert f"restored {tmp_path / 'b'}/model.ckpt-5 at step 5" in capsys.readouterr().err


def test_fed_values_that_are_not_finite(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", model, "--fetch", "out/sum", *Y, "--check-numerics"]
    assert graphmill([*command, "--feed", "x=[[1,nan]]"]) == 3
    told = capsys.readouterr().err
    assert (
        "the value fed for 'x:0' is not finite: shape [1, 2]" in told and "1 NaN" in told and "first at [0, 1]" in told
    )
    assert graphmill([*command, *X]) == 0


@pytest.mark.parametrize("damaged", ["data-00000-of-00001", "index"])
@pytest.mark.parametrize("more", [[], ["--checkpoint-dir", "new"]])
def test_a_damaged_checkpoint_is_the_options_mistake(
    digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], damaged: str, more: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert graphmill(["run", digits, "--init", "--fetch", "global_step", "--save", "ckpt"]) == 0
    command = ["run", digits, "--checkpoint", "ckpt", "--fetch", "global_step", *more]
    assert graphmill(["run", digits, "--checkpoint", "ckpt", "--fetch", "global_step"]) == 0
    file = Path(f"ckpt.{damaged}")
    held = file.read_bytes()
    file.write_bytes(bytes(byte ^ 0xFF for byte in held))
    told = refused(capsys, command)
    assert told.startswith("graphmill: error: --checkpoint: ckpt: ") and told.count("\n") == 1, told


def test_a_checkpoint_that_is_not_there_is_the_options_mistake(
    digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "no" / "ckpt-1")
    told = refused(capsys, ["run", digits, "--checkpoint", missing, "--fetch", "global_step"])
    assert told.startswith(f"graphmill: error: --checkpoint: {missing}: there is no such checkpoint")
    assert digits not in told
