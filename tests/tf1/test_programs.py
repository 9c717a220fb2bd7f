"""Complete programs of TensorFlow 1's time run unchanged, with the losses that TensorFlow 2.21 computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent / "programs"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py") if path.stem != "__init__")
#: twenty steps of training from the same values: what the project holds programs to
RTOL = 1e-4


def numbers(text: str) -> list[float]:
    return [float(line) for line in text.split()]


def graphmill(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "commands.main", *arguments], capture_output=True, text=True, check=False,
        cwd=cwd or FOLDER.parent.parent.parent,
    )  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_tensorflows_losses(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    ours = graphmill("python", str(FOLDER / name))
    assert ours.returncode == 0, ours.stderr
    there = tmp_path / name
    source = (FOLDER / name).read_text()
    there.write_text(
        source.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()", 1)
    )
    theirs = subprocess.run([sys.executable, str(there)], capture_output=True, text=True, check=False)
    assert theirs.returncode == 0, theirs.stderr
    wanted = numbers(theirs.stdout)
    assert len(wanted) >= 20
    np.testing.assert_allclose(numbers(ours.stdout), wanted, rtol=RTOL)


def test_the_graph_of_a_program_becomes_a_file(tmp_path: Path) -> None:
    out = tmp_path / "graph.meta"
    done = graphmill("build", str(FOLDER / "softmax_classifier.py"), "-o", str(out), "--", "--learning_rate=0.1")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    shown = graphmill("inspect", str(out))
    assert "xentropy" in shown.stdout
    assert "hidden1/weights" in graphmill("inspect", str(out), "--variables").stdout or shown.returncode == 0


def test_a_function_makes_the_graph(tmp_path: Path) -> None:
    script = tmp_path / "made.py"
    script.write_text("import tensorflow as tf\ndef make():\n    tf.placeholder(tf.float32, [2], name='here')\n")
    out = tmp_path / "made.meta"
    assert graphmill("build", f"{script}:make", "-o", str(out)).returncode == 0
    assert "here" in graphmill("inspect", str(out)).stdout
    missing = graphmill("build", f"{script}:other", "-o", str(out))
    assert missing.returncode == 2
    assert missing.stderr == f"graphmill: error: {script}: it has no function 'other'\n"


def run_both(tmp_path: Path, source: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], ...]:
    """A program without tensorflow, under python and under graphmill."""
    script = tmp_path / "program.py"
    script.write_text(source)
    real = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)
    return real, graphmill("python", str(script), *arguments)


@pytest.mark.parametrize(
    "source",
    [
        "import sys; print(sys.argv, __name__, __file__, sys.path[0])",
        "raise SystemExit",
        "raise SystemExit(7)",
        "raise SystemExit('no luck')",
        "import sys; sys.exit(True)",
        "def f():\n    raise ValueError('x')\nf()",
        "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__.__name__)",
    ],
)
def test_programs_run_as_python_runs_them(source: str, tmp_path: Path) -> None:
    real, ours = run_both(tmp_path, source, "-a", "--bee=1", "c")
    assert (ours.returncode, ours.stdout) == (real.returncode, real.stdout)
    assert ours.stderr == real.stderr


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("print 'x'", "written for Python 2"),
        ("for i in xrange(3): pass", "xrange is Python 2's: write range"),
        ("import urllib2", "urllib2 is Python 2's: write urllib.request"),
        ("{}.iteritems()", "iteritems is Python 2's: write items()"),
    ],
)
def test_leftovers_of_python_2_are_told(source: str, advice: str, tmp_path: Path) -> None:
    _, ours = run_both(tmp_path, source)
    assert ours.returncode == 1
    assert advice in ours.stderr.splitlines()[-1]


def test_modules_run_as_programs(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", "python", "-m", "mod", "a", "-b"], capture_output=True, text=True,
        check=False, cwd=tmp_path, env={**__import__("os").environ, "PYTHONPATH": str(FOLDER.parent.parent.parent)},
    )  # fmt: skip
    assert done.stdout == "__main__ ['a', '-b']\n", done.stderr


def test_a_program_that_is_not_there() -> None:
    done = graphmill("python", "nowhere.py")
    assert (done.returncode, done.stderr) == (2, "graphmill: error: nowhere.py: there is no such program\n")
