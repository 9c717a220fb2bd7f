"""Checkpoint commands used wrongly, on odd folders, at a prompt: exit codes, messages, what is offered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.checkpoint import COMMANDS
from commands.checkpoint.complete import complete_prefix, complete_tensor, offers
from commands.main import run
from tests.commands.checkpoint_cli import Cli
from tests.formats.bundle_cases import small_checkpoint
from toolkit.formats.bundle import BundleReader, latest_checkpoint, save, storage, write_state
from toolkit.formats.bundle.transfer import convert


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    small_checkpoint(tmp_path / "model" / "ckpt-1", 2)
    return tmp_path / "model" / "ckpt-1"


# -- exit codes ------------------------------------------------------------------------------------------

#: command lines with something wrong in them; NEW is a name to write, SRC a checkpoint, GONE a name without one
WRONG = [
    "inspect GONE", "inspect SRC --values nothing", "inspect SRC --only nothing", "inspect SRC --tree", "verify GONE",
    "diff SRC GONE", "convert GONE NEW", "convert SRC NEW --shards 9", "prune GONE -o NEW --slots",
    "prune SRC -o NEW --drop nothing", "prune SRC -o NEW --for GONE", "rename GONE a=b -o NEW",
    "rename SRC bias=step -o NEW", "rename SRC --to-names -o NEW", "rename SRC nothing=x -o NEW",
    "cast SRC --to nothing -o NEW", "cast GONE --to float16 -o NEW", "average SRC GONE -o NEW",
    "average SRC SRC --weights 1 -o NEW", "slice SRC part=9,9:- -o NEW", "slice SRC nothing=0,1 -o NEW",
    "slice SRC --partition step -o NEW", "slice GONE part=0,1:- -o NEW", "merge SRC SRC -o NEW",
    "merge SRC --shards 99 -o NEW", "import SRC bias=GONE.npy -o NEW", "import GONE bias=GONE.npy -o NEW",
    "latest GONE", "list GONE", "clean GONE", "relocate GONE", "relocate FOLDER", "restore-check GONE SRC",
    "list SRC.index", "latest SRC.index",
]  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_bad_input_is_2_and_leaves_nothing(cli: Cli, prefix: Path, tmp_path: Path, line: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    names = {"SRC": prefix, "GONE": tmp_path / "gone", "NEW": tmp_path / "new" / "c", "FOLDER": prefix.parent}
    for name, path in names.items():
        line = line.replace(name, str(path))
    cli(*line.split(), code=2)
    shutil.rmtree(tmp_path / "new", ignore_errors=True)  # the folder may have been made, nothing in it
    assert sorted(tmp_path.rglob("*")) == before


def test_every_command_has_a_wrong_line() -> None:
    assert {line.split()[0] for line in WRONG} == set(COMMANDS)


def test_damage_is_bad_input(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    data = Path(f"{prefix}.data-00000-of-00002")
    data.write_bytes(b"\xff" + data.read_bytes()[1:])
    assert "damaged" in cli("convert", prefix, tmp_path / "new", code=2)
    data.unlink()
    assert "is missing" in cli("convert", prefix, tmp_path / "new", code=2)
    Path(f"{prefix}.index").write_bytes(b"nonsense")
    assert "truncated" in cli("inspect", prefix, code=2)


def test_permissions_are_bad_input(cli: Cli, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(error: int) -> Any:
        def call(*args: Any) -> Any:
            raise OSError(error, os.strerror(error))

        return call

    # EACCES, EROFS, ENAMETOOLONG; a full disk and a broken one are not
    for number, code in ((13, 2), (30, 2), (36, 2), (28, 3), (5, 3)):
        with monkeypatch.context() as patch:
            patch.setattr(storage, "sys_write", refuse(number))
            assert os.strerror(number).lower() in cli("convert", prefix, tmp_path / "new", code=code)
    assert not list(tmp_path.glob("new*"))


def test_a_dry_run_needs_no_name(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    assert "would drop 1 tensor" in cli("prune", prefix, "--drop", "step", "--dry-run")
    assert "1 tensor would be renamed" in cli("rename", prefix, "bias=b", "--dry-run")
    assert "step -> step/.ATTRIBUTES/VARIABLE_VALUE" in cli("rename", prefix, "--to-objects", "--dry-run")
    for line in (["prune", prefix, "--drop", "step"], ["rename", prefix, "bias=b"], ["rename", prefix, "--to-objects"]):
        assert "say what to write: -o NEW" in cli(*line, code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_dry_runs_say_what_happens(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    """Between names and objects too: the same table, and nothing written."""
    objects = tmp_path / "objects"
    there, back = ("rename", prefix, "--to-objects"), ("rename", objects, "--to-names")
    alike = ("rename", prefix, "--to-objects", "--like", objects)
    would = {"there": cli(*there, "--dry-run")}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    does = {"there": cli(*there, "-o", objects)}
    for name, words in (("back", back), ("alike", alike)):
        would[name], does[name] = cli(*words, "--dry-run"), cli(*words, "-o", tmp_path / name)
    assert {name: text.replace("would be renamed", "renamed") for name, text in would.items()} == does
    assert json.loads(cli(*back, "--dry-run", "--json"))["output"] is None
    assert "object-based already" in cli("rename", objects, "--to-objects", "--dry-run", code=2)
    assert "has no object graph" in cli("rename", prefix, "--to-names", "--dry-run", code=2)
    assert "has no object graph" in cli("rename", prefix, "--to-objects", "--like", prefix, "--dry-run", code=2)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_verifying_files_of_arrays(cli: Cli, prefix: Path, tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"a{suffix}"
    convert(prefix, whole)
    assert f"{whole}: no findings in 6 tensors" in cli("verify", whole)
    damaged = tmp_path / f"b{suffix}"
    data = whole.read_bytes()
    for length in (0, 7, len(data) // 2, len(data) - 1):
        damaged.write_bytes(data[:length])
        assert f"{damaged}: 1 finding in 0 tensors" in cli("verify", damaged, code=1)
    assert "no such file" in cli("verify", tmp_path / f"gone{suffix}", code=2)


def test_verifying_an_archive_finds_the_array(cli: Cli, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(90_000, "u1"), b=np.full(90_000, 7, "u1"))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[data.index(b"\7" * 1000) + 80_000] = 8
    (tmp_path / "a.npz").write_bytes(data)
    found = json.loads(cli("verify", tmp_path / "a.npz", "--json", code=1))["findings"]
    assert [(item["kind"], item["tensor"]) for item in found] == [("crc", "b")]


def test_names_that_are_empty(cli: Cli, prefix: Path) -> None:
    """As `"$(graphmill checkpoint latest nowhere)"` gives them: not the working directory."""
    for words in (["verify", ""], ["inspect", ""], ["convert", prefix, ""], ["diff", prefix, ""]):
        assert "the name of the checkpoint is empty" in cli(*words, code=2)


def test_a_pipe_is_no_checkpoint(cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command in ("verify", "inspect"):  # and neither waits for somebody to write into it
        assert "there is no checkpoint here" in cli(command, tmp_path / "pipe", code=2)


def test_numbers_that_are_none(cli: Cli, tmp_path: Path) -> None:
    assert "'x' is not a number" in cli("clean", tmp_path, "--keep-every-n-hours", "x", code=2)
    assert "'x' is not a whole number" in cli("clean", tmp_path, "--max-to-keep", "x", code=2)


def test_verifying_what_is_no_checkpoint(cli: Cli, tmp_path: Path) -> None:
    for name, data in (("empty", b""), ("text", b"hello")):
        (tmp_path / name).write_bytes(data)
        assert "neither a checkpoint's prefix nor" in cli("verify", tmp_path / name, code=2)
    (tmp_path / "w.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "an HDF5 file" in cli("verify", tmp_path / "w.h5", code=2)


def test_what_would_spoil_the_result(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    """Weights that make everything NaN, an option that would do nothing, a list of names without an end."""
    convert(prefix, tmp_path / "other")
    for weights in ("nan,1", "1,inf"):
        line = ("average", prefix, tmp_path / "other", "--weights", weights, "-o", tmp_path / "x")
        assert "the weights must be finite" in cli(*line, code=2)
    assert "is one file; leave --shards out" in cli("convert", prefix, tmp_path / "x", "--v1", "--shards", 2, code=2)
    assert "and 3 more would all be called 'x'" in cli("rename", prefix, "*=x", "--dry-run", code=2)
    assert sorted(path.name for path in tmp_path.glob("x*")) == []


def test_messages_that_say_more(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "weights.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "an HDF5 file (Keras weights), which is not read" in cli("inspect", tmp_path / "weights.h5", code=2)
    assert "there is no such folder; did you mean 'model'" in cli("verify", f"{tmp_path}/modle/", code=2)
    assert f"'{prefix}' is given twice" in cli("merge", prefix, prefix, "-o", tmp_path / "x", code=2)
    convert(prefix, tmp_path / "other")
    assert f"it is in '{prefix}' and in '{tmp_path / 'other'}'" in cli(
        "merge", prefix, tmp_path / "other", "-o", tmp_path / "x", code=2
    )
    assert "are different reports; give one" in cli("inspect", prefix, "--tree", "--scopes", code=2)
    assert "are different reports; give one" in cli("inspect", prefix, "--values", "bias", "--stats", code=2)
    write_state(prefix.parent, str(prefix), relative=True)
    assert "the paths name the checkpoints beside the file already" in cli("relocate", prefix.parent)
    assert json.loads(cli("inspect", prefix.parent / "checkpoint", "--json"))["prefix"] == str(prefix)
    cli("rename", prefix, "--to-objects", "-o", tmp_path / "objects")
    assert "the root has no child 'x'; it has bias, empty, flags, part, step, words" in cli(
        "inspect", tmp_path / "objects", "--values", "x/y", code=2
    )


# -- targets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["convert SRC NEW", "prune SRC -o NEW --drop step", "merge SRC -o NEW",
    "rename SRC bias=b -o NEW", "average SRC SRC -o NEW", "convert SRC NEW --v1",
    "slice SRC --partition part -o NEW"])  # fmt: skip
def test_targets_that_are_no_names(cli: Cli, prefix: Path, tmp_path: Path, options: str) -> None:
    (tmp_path / "folder").mkdir()

    def attempt(target: str) -> str:
        return cli(*options.replace("SRC", str(prefix)).replace("NEW", str(tmp_path / target)).split(), code=2)

    assert f"is a folder; give the checkpoint a name in it, e.g. '{tmp_path / 'folder'}/model'" in attempt("folder")
    assert "is a folder" in attempt("folder/")
    for suffix in (".h5", ".pt", ".onnx", ".json", ".npy", ".H5"):
        assert f"cannot write '{suffix.lower()}' files: a name ending in .npz or .safetensors" in attempt(f"x{suffix}")
    assert f"its prefix is '{tmp_path / 'x'}'" in attempt("x.index")
    assert "cannot write" in attempt("x.data-00000-of-00001")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "model"]
    assert not list((tmp_path / "folder").iterdir())


def test_names_with_dots_are_prefixes(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    for name in ("model.ckpt", "model.ckpt-1000", "weights.01-0.33", "v1.2"):
        cli("convert", prefix, tmp_path / name)
        assert len(BundleReader(tmp_path / name)) == 6
    cli("convert", prefix, tmp_path / "X.NPZ")
    assert "6 tensors equal" in cli("diff", prefix, tmp_path / "X.NPZ")


# -- folders ---------------------------------------------------------------------------------------------


def test_missing_data_files(cli: Cli, prefix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = Path(f"{prefix}.data-00001-of-00002")
    gone.unlink()
    out = cli("inspect", prefix, code=1)
    assert out.splitlines()[-1] == f"missing data file: {gone}" and "in 2 data files" in out
    assert json.loads(cli("inspect", prefix, "--json", code=1))["missing"] == [str(gone)]
    assert "missing data file" not in cli("inspect", prefix, "--scopes", code=1)
    capsys.readouterr()
    run(["inspect", str(prefix)])
    assert "2 data files (1 missing)" in capsys.readouterr().out


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder with V1 and V2 checkpoints and files that are neither, oldest first by name."""
    folder = tmp_path / "mixed"
    save(tmp_path / "source", {"w": np.arange(4, dtype="f4")})
    for at, (name, v1) in enumerate((("m-1", True), ("m-2", False), ("m-10", True))):
        convert(tmp_path / "source", folder / name, v1=v1)
        for path in folder.glob(f"{name}*"):
            os.utime(path, (1e9 + at, 1e9 + at))
    (folder / "notes.txt").write_text("hello")
    (folder / "README").write_text("hello")
    (folder / "empty").touch()
    (folder / "events.out.tfevents.1.host").write_bytes(bytes(64))
    return folder


def test_v1_checkpoints_in_folders(cli: Cli, mixed: Path) -> None:
    lines = [line.split() for line in cli("list", mixed).splitlines()]
    assert [(line[0], line[1]) for line in lines[1:-1]] == [
        (str(mixed / name), kind) for name, kind in (("m-1", "V1"), ("m-2", "V2"), ("m-10", "V1"))
    ]
    assert lines[-1][:2] == ["3", "checkpoints,"]
    assert "has 3 checkpoints (m-1, m-2, m-10) and no state file" in cli("latest", mixed, code=2)
    write_state(mixed, str(mixed / "m-10"), [str(mixed / "m-1"), str(mixed / "m-2")])
    assert cli("latest", mixed) == f"{mixed / 'm-10'}\n"
    assert "1 tensor" in cli("inspect", mixed)
    assert cli("clean", mixed, "--max-to-keep", 2).splitlines()[0] == str(mixed / "m-1")
    cli("clean", mixed, "--max-to-keep", 1, "--yes")
    assert sorted(path.name for path in mixed.iterdir()) == [
        "README", "checkpoint", "empty", "events.out.tfevents.1.host", "m-10", "notes.txt",
    ]  # fmt: skip
    assert latest_checkpoint(mixed) == str(mixed / "m-10")


@pytest.mark.tensorflow
def test_v1_checkpoints_in_several_files(tf: ModuleType, cli: Cli, tmp_path: Path) -> None:
    """What a sharded Saver of the V1 format leaves: a pattern in the state file."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        for at in range(2):
            with tf.device(f"/cpu:{at}"):
                v1.get_variable(f"w{at}", initializer=np.full((2, 3), at, "f4"), use_resource=False)
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(sharded=True, write_version=v1.train.SaverDef.V1, max_to_keep=1)
        (tmp_path / "run").mkdir()
        path = saver.save(session, str(tmp_path / "run" / "m"), global_step=1)
    assert path == f"{tmp_path}/run/m-1-?????-of-00002"
    assert cli("latest", tmp_path / "run") == f"{path}\n"
    assert "2 tensors, 12 elements" in cli("inspect", tmp_path / "run")
    listed = json.loads(cli("list", tmp_path / "run", "--json"))["checkpoints"]
    assert [(item["prefix"], item["format"], item["latest"]) for item in listed] == [(path, "V1", True)]
    assert f"{path}: no findings in 2 tensors" in cli("verify", path)
    cli("convert", tmp_path / "run", tmp_path / "v2")
    assert tf.train.load_checkpoint(str(tmp_path / "v2")).get_tensor("w1").tolist() == [[1.0] * 3] * 2
    (tmp_path / "run" / "m-1-00001-of-00002").unlink()
    assert "there are 1 files of 2" in cli("verify", path, code=1)
    assert "deleted 0 checkpoints" in cli("clean", tmp_path / "run", "--max-to-keep", 1, "--yes")


STATES = {
    "other names": ('model_checkpoint_path: "/a/b/m-1"\nall_model_checkpoint_paths: "/a/b/m-1"\n', "/a/b/m-1 -> m-1"),
    "windows": ('model_checkpoint_path: "C:\\\\run\\\\m-2"\n', "C:\\run\\m-2 -> m-2"),
    "dots": ('model_checkpoint_path: "../../old/./m-2"\n', "../../old/./m-2 -> m-2"),
    "trailing spaces": ('model_checkpoint_path:    "./m-2"   \n\n', "./m-2 -> m-2"),
    "single quotes": ("model_checkpoint_path: 'x/m-2'\n", "x/m-2 -> m-2"),
    "gone ones": ('model_checkpoint_path: "/x/m-2"\nall_model_checkpoint_paths: "/x/m-0"\n', "/x/m-2 -> m-2"),
    "odd times": (
        '''model_checkpoint_path: "/x/m-2"
        all_model_checkpoint_paths: "/x/m-1"
        all_model_checkpoint_paths: "/x/m-2"
        all_model_checkpoint_timestamps: 1.5''',
        "/x/m-2 -> m-2\n/x/m-1 -> m-1",
    ),
    "v1": ('model_checkpoint_path: "/x/m-10"\n', "/x/m-10 -> m-10"),
    "url": ('model_checkpoint_path: "gs://bucket/run/m-2"\n', "gs://bucket/run/m-2 -> m-2"),
}  # fmt: skip


@pytest.mark.parametrize("case", STATES)
def test_odd_state_files(cli: Cli, mixed: Path, case: str) -> None:
    text, expected = STATES[case]
    (mixed / "checkpoint").write_text(text)
    assert cli("relocate", mixed).splitlines() == expected.splitlines()
    latest = latest_checkpoint(mixed)
    assert latest is not None and latest.startswith(str(mixed))
    state = (mixed / "checkpoint").read_text()
    assert "/x/" not in state and "timestamps" not in state
    assert cli("relocate", mixed, "--absolute")
    assert latest_checkpoint(mixed) == str(Path(latest).resolve())


def test_state_files_that_say_nothing(cli: Cli, mixed: Path) -> None:
    for text, expected in (
        ("", "names no latest checkpoint"), ('all_model_checkpoint_paths: "m-1"\n', "names no latest checkpoint"),
        ("nonsense\n", "not a checkpoint state file"), ("\x00\xff", "not a checkpoint state file"),
        ('model_checkpoint_path: "/x/m-7"\n', "'/x/m-7' is not in the folder; it has m-1, m-2, m-10"),
    ):  # fmt: skip
        (mixed / "checkpoint").write_bytes(text.encode("latin-1"))
        assert expected in cli("relocate", mixed, code=2)
        assert (mixed / "checkpoint").read_bytes() == text.encode("latin-1")
    (mixed / "checkpoint").unlink()
    (mixed / "checkpoint").mkdir()
    assert "directory" in cli("relocate", mixed, code=2)


# -- completion ------------------------------------------------------------------------------------------


def test_what_is_offered() -> None:
    few = ["dense/bias", "dense/kernel", "step"]
    assert offers(few, "") == few
    assert offers(few, "dense/") == ["dense/bias", "dense/kernel", "dense/*"]
    assert offers(few, "dense/k") == ["dense/kernel"]
    assert offers(few, "x") == []
    many = [f"net/layer{i}/{name}" for i in range(40) for name in ("kernel", "kernel/Adam")]
    assert offers(many, "")[:3] == ["net/layer0/", "net/layer0/*", "net/layer1/"]
    assert offers(many, "*/ker") == ["*/kernel", "*/kernel/Adam"]
    assert offers(many, "net/*/ker") == ["net/*/kernel", "net/*/kernel/Adam"]
    assert offers(many, "net/layer?/kernel/A") == ["net/layer?/kernel/Adam"]
    assert offers(many, "net/*") == ["net/*"]
    assert offers(["a" * 40 + str(i) for i in range(50)], "a")[0] == "a" * 40 + "0"


def test_completion_of_files(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert(prefix, tmp_path / "model" / "old", v1=True)
    convert(prefix, tmp_path / "model" / "a.npz")
    convert(prefix, tmp_path / "model" / "a.safetensors")
    folder = str(prefix.parent)
    assert complete_prefix(f"{folder}/") == [
        f"{folder}/a.npz", f"{folder}/a.safetensors", f"{folder}/ckpt-1", f"{folder}/old",
    ]  # fmt: skip
    monkeypatch.chdir(prefix.parent)
    assert complete_prefix("ck") == ["ckpt-1"]
    assert complete_prefix("") == ["a.npz", "a.safetensors", "ckpt-1", "old"]
    assert complete_prefix("none/x") == []

    class Context:
        args: list[str] = []  # noqa: RUF012
        params: dict[str, Any] = {}  # noqa: RUF012

    for name in ("a.npz", "a.safetensors", "ckpt-1", "ckpt-1.index", "old", "."):
        Context.params = {"prefix": name}
        assert complete_tensor(Context(), "f") == (["flags"] if name != "." else [])
    (prefix.parent / "bad.npz").write_bytes(b"no archive")
    Context.params = {"prefix": "bad.npz"}
    assert complete_tensor(Context(), "f") == []


LINES = [
    ("inspect PREFIX --values f", ["flags"]), ("inspect PREFIX --only f", ["flags"]),
    ("prune PREFIX -o x --drop b", ["bias"]), ("prune PREFIX -o x --keep '*a", ["*as", "*art", "*ags"]),
    ("rename PREFIX st", ["step"]), ("slice PREFIX pa", ["part"]), ("slice PREFIX --partition pa", ["part"]),
    ("import PREFIX w", ["words"]), ("diff PREFIX PREFIX --only e", ["empty"]), ("cast PREFIX --only e", ["empty"]),
]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_every_shell(prefix: Path, shell: str, line: str, expected: list[str]) -> None:
    """As the scripts of `graphmill --show-completion` ask; nothing heavy is imported for the answer."""
    typed = f"graphmill checkpoint {line.replace('PREFIX', str(prefix))}"
    words = typed.replace("'", "") if shell == "bash" else typed.replace("'*", "*")
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    script = (
        "import sys\nfrom commands.main import main\n"
        "try:\n    main([])\n"
        "finally:\n    heavy = {'numpy', 'ml_dtypes', 'google.protobuf', 'rich'} & set(sys.modules)\n"
        "    assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "_GRAPHMILL_COMPLETE": f"complete_{shell}", **asked},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "assert" not in done.stderr.lower(), done.stderr
    offered = done.stdout
    if shell == "bash":
        assert sorted(offered.split()) == sorted(expected), done.stderr
    else:
        assert all(name in offered for name in expected), (offered, done.stderr)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash(prefix: Path) -> None:
    """The script that `--install-completion` writes, in a bash that presses Tab."""
    # typer looks which shell its parent is; with a command behind it, that is this bash, and not who runs the tests
    program = "from commands.main import main; main(['--show-completion'])"
    told = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{program}" && true'], capture_output=True, text=True, check=False
    )
    shown = told.stdout
    assert told.returncode == 0 and "_graphmill_completion" in shown, told.stderr
    script = (
        f"{shown}\nPATH={Path(sys.executable).parent}:$PATH\n"
        f"COMP_WORDS=(graphmill checkpoint inspect {prefix} --values f)\nCOMP_CWORD=5\n"
        "_graphmill_completion graphmill\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["flags"], done.stderr
