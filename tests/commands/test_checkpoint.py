"""`graphmill checkpoint ...` from the command line: reports, exit codes, messages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from commands import messages
from commands.checkpoint import COMMANDS
from commands.checkpoint.shared import complete_prefix, complete_tensor
from commands.main import run
from tests.commands.checkpoint_cli import Cli
from tests.formats.bundle_cases import equal, small_checkpoint
from toolkit.formats.bundle import BundleReader, latest_checkpoint, save, write_state


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    small_checkpoint(tmp_path / "model" / "ckpt-1", 2)
    return tmp_path / "model" / "ckpt-1"


def test_inspect(cli: Cli, prefix: Path) -> None:
    lines = cli("inspect", prefix).splitlines()
    assert lines == [
        "name   dtype    shape  bytes    shard",
        "bias   float64  [2]       16        0",
        "empty  int32    [0,3]      0        1",
        "flags  bool     [3]        3        0",
        "part   float32  [4,3]     48  2 parts",
        "step   int64    []         8        0",
        "words  string   [3]       11        1",
        f"6 tensors, 21 elements, 86 bytes (86 B) in 2 data files: {prefix}",
    ]


def test_inspect_json(cli: Cli, prefix: Path) -> None:
    report = cli.json("inspect", prefix)
    assert report["prefix"] == str(prefix) and report["shards"] == 2 and report["bytes"] == 86
    assert report["tensors"]["part"] == {
        "dtype": "float32", "shape": [4, 3], "bytes": 48, "shard": 1, "offset": 0, "crc32c": "00000000",
        "slices": ["0,2:-", "2,2:-"],
    }  # fmt: skip


def test_inspect_finds_checkpoints(cli: Cli, prefix: Path) -> None:
    for text in (f"{prefix}.index", f"{prefix}.data-00001-of-00002", prefix.parent):
        assert cli.json("inspect", text)["prefix"] == str(prefix)
    error = cli("inspect", f"{prefix}2", code=2)
    assert "there is no checkpoint here" in error and "did you mean 'ckpt-1'?" in error


def test_inspect_more(cli: Cli, prefix: Path) -> None:
    assert "1.5" in cli("inspect", prefix, "--stats", "--only", "b*")
    stats = cli.json("inspect", prefix, "--stats")["tensors"]["bias"]["stats"]
    assert (stats["min"], stats["max"], stats["mean"], stats["nan"]) == (-2.0, 1.5, -0.25, 0)
    assert cli("inspect", prefix, "--values", "words").splitlines()[0] == "words string[3]"
    values = cli.json("inspect", prefix, "--values", "bias", "--values", "words")["tensors"]
    assert values["bias"]["values"] == [1.5, -2.0] and values["words"]["values"] == ["to", "", "be"]
    assert "no tensor matches 'bais'; did you mean 'bias'" in cli("inspect", prefix, "--only", "bais", code=2)
    assert "there is no tensor 'bais'" in cli("inspect", prefix, "--values", "bais", code=2)
    assert "name-based" in cli("inspect", prefix, "--tree", code=2)


def test_inspect_scopes(cli: Cli, tmp_path: Path) -> None:
    save(tmp_path / "c", {"a/b/w": np.zeros(2, "f4"), "a/v": np.zeros(1, "f4"), "x": np.zeros(3, "f4")})
    scopes = cli.json("inspect", tmp_path / "c", "--scopes")["scopes"]
    assert scopes == {
        "/": {"tensors": 3, "elements": 6, "bytes": 24}, "a": {"tensors": 2, "elements": 3, "bytes": 12},
        "a/b": {"tensors": 1, "elements": 2, "bytes": 8},
    }  # fmt: skip
    assert "a/b" not in cli.json("inspect", tmp_path / "c", "--scopes", "--depth", 1)["scopes"]
    assert cli("inspect", tmp_path / "c", "--scopes").splitlines()[1].split() == ["(all)", "3", "6", "24", "B"]


@pytest.mark.tensorflow
def test_inspect_tree(tf: ModuleType, cli: Cli, tmp_path: Path) -> None:
    net = tf.Module()
    net.w, net.again = tf.Variable([1.0, 2.0]), tf.Variable(3)
    net.loop = net
    path = tf.train.Checkpoint(net=net).write(str(tmp_path / "c"))
    lines = cli("inspect", path, "--tree").splitlines()
    assert lines == ["(root)", "  net", "    w  float32[2]", "    again  int32[]", "    loop -> object 1"]
    assert cli.json("inspect", path, "--tree")["objects"][0]["children"] == {"net": 1}
    assert cli("inspect", path, "--values", "net/loop/w") == "net/w/.ATTRIBUTES/VARIABLE_VALUE float32[2]\n[1. 2.]\n"
    assert "object 'net' has no child 'agian'; did you mean 'again'" in cli(
        "inspect", path, "--values", "net/agian", code=2
    )


def test_verify(cli: Cli, prefix: Path) -> None:
    assert cli("verify", prefix) == f"{prefix}: no findings in 6 tensors, 86 B\n"
    data = Path(f"{prefix}.data-00000-of-00002")
    data.write_bytes(b"\xff" + data.read_bytes()[1:])
    out = cli("verify", prefix, code=1)
    assert f"{data}: tensor 'bias' at offset 0: crc: the CRC of its 16 bytes is" in out
    report = cli.json("verify", prefix.parent, code=1)
    assert not report["ok"] and report["findings"][0]["tensor"] == "bias" and report["findings"][0]["offset"] == 0
    Path(f"{prefix}.index").write_bytes(b"x" * 100)
    assert "index: the file does not end as a table does" in cli("verify", prefix, code=1)
    assert "there is no checkpoint" in cli("verify", "nothing", code=2)


@pytest.mark.tensorflow
def test_verify_and_restore_check_and_prune_with_a_graph(tf: ModuleType, cli: Cli, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [3, 2], use_resource=False)
        v1.train.AdamOptimizer().minimize(tf.reduce_sum(w))
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default() as graph:
        v1.get_variable("w", [3, 2], use_resource=False)
    (tmp_path / "small.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with tf.Graph().as_default() as graph:
        v1.get_variable("w", [2, 3], use_resource=False)
        v1.get_variable("b", [2], use_resource=False)
    (tmp_path / "other.pb").write_bytes(graph.as_graph_def().SerializeToString())

    assert "no findings" in cli("verify", prefix, "--graph", f"{prefix}.meta")
    assert "extra: the graph does not read it" in cli("verify", prefix, "--graph", tmp_path / "small.pb", code=1)
    assert "restores into" in cli("restore-check", f"{prefix}.meta")
    assert cli.json("restore-check", tmp_path / "small.pb", prefix)["restores"]
    out = cli("restore-check", tmp_path / "other.pb", prefix, code=1)
    assert "tensor 'w': shape: the checkpoint has [3,2], the graph [2,3]" in out and "tensor 'b': missing" in out
    assert "give its PREFIX" in cli("restore-check", tmp_path / "small.pb", code=2)

    report = cli.json("prune", prefix, "-o", tmp_path / "pruned", "--for", tmp_path / "small.pb")
    assert report["kept"] == ["w"] and report["bytes_saved"] == 56
    assert "the graph needs 'b', which the checkpoint lacks" in cli(
        "prune", prefix, "-o", tmp_path / "x", "--for", tmp_path / "other.pb", code=2
    )
    assert "dropped 4 tensors" in cli("prune", prefix, "-o", tmp_path / "slots", "--slots")
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [3, 2], use_resource=False)
        v1.train.Saver().restore(session, str(tmp_path / "slots"))
        assert equal(session.run(w), BundleReader(prefix).read("w"))


def test_prune(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert cli("prune", prefix, "-o", new, "--drop", "*s", "--dry-run").splitlines() == [
        "bias", "flags", "words", "would drop 3 tensors, 30 B (35%); kept 3 tensors, 56 B",
    ]  # fmt: skip
    assert not list(tmp_path.glob("new*"))
    cli("prune", prefix, "-o", new, "--drop", "*s", "--keep", "bias")
    assert list(BundleReader(new)) == ["bias", "empty", "part", "step"]
    cli("prune", prefix, "-o", new, "--keep", "re:^(step|part)$")
    assert list(BundleReader(new)) == ["part", "step"]
    assert "say what to drop" in cli("prune", prefix, "-o", new, code=2)
    assert "no tensor matches 'adam*'" in cli("prune", prefix, "-o", new, "--drop", "adam*", code=2)
    assert "--signature needs --for" in cli("prune", prefix, "-o", new, "--slots", "--signature", "s", code=2)
    cli("prune", prefix, "-o", f"{new}.npz", "--keep", "bias")
    assert np.load(f"{new}.npz")["bias"].tolist() == [1.5, -2]


def test_diff(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    assert cli("diff", prefix, prefix) == "0 added, 0 removed, 0 changed, 6 tensors equal\n"
    with BundleReader(prefix) as reader:
        tensors = {name: np.array(reader.read(name)) for name in reader if name != "step"}
    tensors["bias"][0] += 0.5
    save(tmp_path / "b", {**tensors, "new": np.zeros(1)})
    out = cli("diff", prefix, tmp_path / "b", code=1).splitlines()
    assert [line.split()[:2] for line in out[1:4]] == [["~", "bias"], ["+", "new"], ["-", "step"]]
    assert out[-1] == "1 added, 1 removed, 1 changed, 4 tensors equal"
    report = cli.json("diff", prefix, tmp_path / "b", "--only", "bias", code=1)
    assert report["tensors"]["bias"]["max_abs"] == 0.5 and report["changed"] == 1
    assert "1 tensor equal" in cli("diff", prefix, tmp_path / "b", "--only", "bias", "--atol", 0.5)


def test_convert(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    for first, then in ((tmp_path / "a.npz", tmp_path / "b.safetensors"), (tmp_path / "v1", tmp_path / "v2")):
        options = ["--v1"] if first.name == "v1" else []
        cli("convert", prefix, first, *options)
        cli("convert", first, then)
        assert "6 tensors equal" in cli("diff", prefix, then)
    cli("convert", tmp_path / "b.safetensors", tmp_path / "c", "--shards", 1)
    assert "no such file" in cli("convert", tmp_path / "none.npz", tmp_path / "x", code=2)
    assert "a .npz file has no shards" in cli("convert", prefix, tmp_path / "x.npz", "--shards", 2, code=2)
    assert not list(tmp_path.glob("x*"))
    assert "no findings" in cli("verify", tmp_path / "v1")


def test_rename(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert cli("rename", prefix, "-o", new, "part=dense/kernel", "b*=dense/b*") == (
        "bias -> dense/bias\npart -> dense/kernel\n2 tensors renamed\n"
    )
    assert {"dense/bias", "dense/kernel"} <= set(BundleReader(new))
    report = cli.json("rename", prefix, "-o", new, "--to-objects")
    assert report["renamed"]["part"] == "part/.ATTRIBUTES/VARIABLE_VALUE"
    cli("rename", new, "-o", tmp_path / "back", "--to-names")
    assert "6 tensors equal" in cli("diff", prefix, tmp_path / "back")
    assert "give rules" in cli("rename", prefix, "-o", new, code=2)
    assert "'part' is no rule" in cli("rename", prefix, "-o", new, "part", code=2)


def test_cast_and_average(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    assert (
        cli("cast", prefix, "-o", tmp_path / "half", "--to", "float16") == "2 tensors cast to float16: 64 B -> 28 B\n"
    )
    assert "'flaot16' is not a data type; did you mean 'float16'" in cli(
        "cast", prefix, "-o", tmp_path / "x", "--to", "flaot16", code=2
    )
    for at in (1, 2, 10):
        save(tmp_path / "run" / f"m-{at}", {"w": np.float32([at])})
    runs = [tmp_path / "run" / f"m-{at}" for at in (1, 2, 10)]
    cli("average", *runs, "-o", tmp_path / "avg", "--weights", "1,1,0")
    assert BundleReader(tmp_path / "avg").read("w") == 1.5
    cli("average", tmp_path / "run", "--last", 2, "-o", tmp_path / "avg")
    assert BundleReader(tmp_path / "avg").read("w") == 6
    cli("average", *runs, "-o", tmp_path / "avg", "--ema", 0.5)
    assert BundleReader(tmp_path / "avg").read("w") == 5.75
    assert "--weights: expected numbers" in cli("average", *runs, "-o", tmp_path / "x", "--weights", "a,b", code=2)


def test_slice_and_merge(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    cli("slice", prefix, "part=1,2:-", "-o", tmp_path / "s")
    assert BundleReader(tmp_path / "s").entry("part").dims == (2, 3)
    cli("merge", prefix, "-o", tmp_path / "whole", "--join-parts")
    assert BundleReader(tmp_path / "whole").entry("part").slices == ()
    cli("slice", tmp_path / "whole", "--partition", "part", "--parts", 3, "--axis", 1, "-o", tmp_path / "cut")
    assert len(BundleReader(tmp_path / "cut").entry("part").slices) == 3
    assert "6 tensors equal" in cli("diff", prefix, tmp_path / "cut")
    cli("merge", prefix, "-o", tmp_path / "four", "--shards", 4)
    assert BundleReader(tmp_path / "four").num_shards == 4
    assert "'part' is no part" in cli("slice", prefix, "part", "-o", tmp_path / "x", code=2)
    assert "give NAME=SLICE" in cli("slice", prefix, "-o", tmp_path / "x", code=2)


def test_import(cli: Cli, prefix: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", [5.0, 6.0])
    np.savez(tmp_path / "k.npz", kernel=np.ones((4, 3)), step=8)
    cli("import", prefix, f"bias={tmp_path / 'b.npy'}", f"part={tmp_path / 'k.npz'}:kernel", "-o", tmp_path / "n")
    with BundleReader(tmp_path / "n") as reader:
        assert reader.read("bias").tolist() == [5, 6] and reader.read("part").sum() == 12
    assert "no tensor 'kernel'" in cli("import", prefix, tmp_path / "k.npz", "-o", tmp_path / "x", code=2)
    assert "expected NAME=FILE.npy" in cli("import", prefix, "bias=none", "-o", tmp_path / "x", code=2)
    cli("import", prefix, f"extra={tmp_path / 'b.npy'}", "--new", "-o", tmp_path / "n")
    assert "extra" in BundleReader(tmp_path / "n")


def test_folders(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    prefixes = []
    for at in range(4):
        save(folder / f"m-{at}", {"w": np.zeros(1)})
        os.utime(folder / f"m-{at}.index", (1e9 + at, 1e9 + at))
        prefixes.append(str(folder / f"m-{at}"))
    assert "has 4 checkpoints" in cli("latest", folder, code=2)
    write_state(folder, prefixes[-1], prefixes[1:])
    assert cli("latest", folder) == prefixes[-1] + "\n"
    listed = cli.json("list", folder)["checkpoints"]
    assert [item["latest"] for item in listed] == [False, False, False, True]
    assert [item["tracked"] for item in listed] == [False, True, True, True]
    assert "not in the state file" in cli("list", folder)
    assert cli("clean", folder, "--max-to-keep", 2).splitlines()[:2] == prefixes[:2]
    assert len(list(folder.glob("*.index"))) == 4
    assert "deleted 2 checkpoints" in cli("clean", folder, "--max-to-keep", 2, "--yes")
    assert len(list(folder.glob("*.index"))) == 2
    moved = tmp_path / "moved"
    folder.rename(moved)
    assert cli("relocate", moved).splitlines()[0] == f"{prefixes[-1]} -> m-3"
    assert latest_checkpoint(moved) == str(moved / "m-3")
    assert "no such folder" in cli("list", folder, code=2)


def test_writing_over_the_input(cli: Cli, prefix: Path) -> None:
    cli("prune", prefix, "-o", prefix, "--drop", "step")
    assert "no findings in 5 tensors" in cli("verify", prefix)
    assert len(list(prefix.parent.iterdir())) == 2


def test_a_bar_for_what_takes_long(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, after a second; it is wiped at the end. Not with -q."""
    shown: list[str] = []
    monkeypatch.setattr(messages, "_PATIENCE", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "write", lambda text: shown.append(text) or len(text))
    monkeypatch.setenv("TERM", "xterm-256color")
    copy = str(tmp_path / "c")
    for args in (
        ["convert", str(prefix), copy],
        ["diff", str(prefix), copy],
        ["verify", copy],
        ["inspect", "--stats", copy],
    ):
        shown.clear()
        assert run(["checkpoint", *args]) == 0
        bar = "".join(shown)
        title = {"convert": "writing", "diff": "comparing", "verify": "verifying", "inspect": "reading"}[args[0]]
        assert bar.startswith(f"\r{title} [") and " of 86 B" in bar
        assert bar.endswith("\r\x1b[K")  # the line is erased
    shown.clear()
    assert run(["checkpoint", "convert", "-q", str(prefix), copy]) == 0
    assert shown == []


def test_no_bar_library_without_a_bar(prefix: Path) -> None:
    script = (
        "import sys\nfrom commands.main import run\n"
        f"assert run(['checkpoint', 'verify', {str(prefix)!r}]) == 0\n"
        "assert not any(name.partition('.')[0] == 'rich' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_usage(cli: Cli) -> None:
    assert "there is no command 'checkpoint inspct'; did you mean 'inspect'" in cli("inspct", code=2)
    assert "--help" in cli("inspect", code=2)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["checkpoint", name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: graphmill checkpoint " + name) and "--json" in out


def test_completion(prefix: Path) -> None:
    class Context:
        params = {"prefix": str(prefix)}  # noqa: RUF012

    assert complete_tensor(Context(), "f") == ["flags"]
    assert complete_prefix(str(prefix.parent) + "/") == [str(prefix)]
    assert complete_prefix(str(prefix.parent)[:-1]) == [f"{prefix.parent}/"]
    Context.params = {"prefix": "none"}
    assert complete_tensor(Context(), "f") == []


@pytest.mark.parametrize("words", ["inspect {} --values f", "prune {} --drop f", "inspect {} --only f"])
def test_completion_of_a_shell(prefix: Path, words: str) -> None:
    line = f"graphmill checkpoint {words.format(prefix)}"
    environment = {
        **os.environ, "_GRAPHMILL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "from commands.main import main; main([])"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["flags"], done.stderr


def test_inspecting_imports_no_numpy(prefix: Path) -> None:
    script = (
        "import sys\nfrom commands.main import run\n"
        f"assert run(['checkpoint', 'inspect', {str(prefix)!r}]) == 0\n"
        "heavy = {'numpy', 'ml_dtypes', 'google.protobuf', 'rich'} & set(sys.modules)\nassert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_memory_stays_small(tmp_path: Path) -> None:
    """Commands over 300 MB in 30 tensors stay below 256 MB."""
    save(tmp_path / "c", {f"w{i:02d}": np.full(2_500_000, i, np.float32) for i in range(30)})
    script = (
        "import re, sys\nfrom commands.main import run\n"
        "code = run(['checkpoint', *sys.argv[1:]])\n"
        # ru_maxrss would count the process that started this one
        "peak = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "assert code == 0 and peak < 256 << 10, (code, peak)"
    )
    new = str(tmp_path / "n")
    for args in (
        ["verify", "c"], ["diff", "c", "c"], ["convert", "c", f"{new}.npz"], ["convert", f"{new}.npz", new],
        ["convert", "c", f"{new}.safetensors"], ["prune", "c", "-o", new, "--drop", "w0*"],
        ["average", "c", "c", "-o", new], ["cast", "c", "-o", new, "--to", "bfloat16"],
        ["inspect", "c", "--stats"], ["merge", "c", "-o", new, "--shards", "4"],
    ):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", script, *args], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (args, done.stderr)
