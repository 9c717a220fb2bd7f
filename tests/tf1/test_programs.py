"""Complete programs of TensorFlow 1's time run unchanged, with the numbers and the graphs of TensorFlow."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from schemas import graph_pb2
from tests.tf1 import node_oracle, program_graphs, programs, record

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
#: twenty steps of training from the same values: what the project holds programs to
RTOL = 1e-4
#: numbers are printed with four decimals or more: half a unit of the last
PRINTED = 0.5e-4


def numbers(texts: list[str]) -> list[float]:
    return [float(text) for text in texts]


def graphmill(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "commands.main", *arguments], capture_output=True, text=True, check=False,
        cwd=cwd or ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def run_here(name: str, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.tf1.graph_here", str(programs.path(name)), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("name", programs.NAMES)
def test_programs_give_tensorflows_numbers_and_graphs(name: str, tmp_path: Path) -> None:
    kept = programs.recorded().get(name)
    assert kept is not None, f"run: python -m tests.tf1.record PYTHON --programs {name}"
    assert kept["source"] == programs.source_hash(name), "the program has changed since it was recorded"
    done = run_here(name, tmp_path / "graph.pb")
    assert done.returncode == 0, done.stderr
    wanted = numbers(kept["printed"])
    assert len(wanted) >= 20
    np.testing.assert_allclose(numbers(done.stdout.split()), wanted, rtol=RTOL, atol=PRINTED)
    graph = graph_pb2.GraphDef.FromString((tmp_path / "graph.pb").read_bytes())
    found = program_graphs.differences(kept, node_oracle.described(graph, across_releases=True))
    assert bool(found) == (name in program_graphs.DIFFERING), "\n".join(found)


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize("name", programs.NAMES)
def test_what_is_recorded_is_what_tensorflow_prints(name: str) -> None:
    pytest.importorskip("tensorflow")
    kept = programs.recorded()[name]
    found = record.run_program(sys.executable, name)
    assert isinstance(found, str) == (kept["release"] == "1.15")
    if not isinstance(found, str):
        np.testing.assert_allclose(numbers(found[0]), numbers(kept["printed"]), rtol=RTOL, atol=PRINTED)
        graphs = kept["graph"], record.described(found[1])
        if name in program_graphs.CHANGING:
            graphs = program_graphs.without_values(graphs[0]), program_graphs.without_values(graphs[1])
        assert graphs[0] == graphs[1]


def test_the_graph_of_a_program_becomes_a_file(tmp_path: Path) -> None:
    out = tmp_path / "graph.meta"
    done = graphmill("build", str(programs.path("softmax_classifier")), "-o", str(out), "--", "--learning_rate=0.1")
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


@pytest.mark.parametrize(
    "opening",
    [
        "s = tf.InteractiveSession()",
        "s = tf.Session()",
        "g = tf.Graph()\nd = g.as_default()\nd.__enter__()\ns = tf.Session()",
    ],
)
@pytest.mark.parametrize("running", ["s.run('a:0')", "s.make_callable('a:0')()", "s.partial_run_setup(['a:0'])"])
def test_a_graph_that_is_made_after_its_session_is_taken_when_that_first_runs(
    opening: str, running: str, tmp_path: Path
) -> None:
    (tmp_path / "p.py").write_text(
        f"import tensorflow as tf\n{opening}\ntf.constant(1.0, name='a')\n{running}\nraise SystemExit('too far')\n"
    )
    done = graphmill("build", "p.py", "-o", "g.pbtxt", "--as", "graphdef.text", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "g.pbtxt").read_text().count("node {") == 1


def test_the_graph_of_a_session_at_a_master_is_taken_without_asking_that(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import tensorflow as tf\ntf.constant(1.0)\ntf.Session('grpc://127.0.0.1:1')\nraise SystemExit('too far')\n"
    )
    assert graphmill("build", "p.py", "-o", "g.meta", cwd=tmp_path).returncode == 0


def test_a_program_that_makes_no_nodes_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import tensorflow as tf\nwith tf.Session() as s:\n    s.run([])\nprint(tf.constant)\n"
    )
    for until, when in (("session", "first ran a session (--until exit waits for its end)"), ("exit", "ended")):
        done = graphmill("build", "p.py", "--until", until, "-o", "g.meta", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == f"graphmill: error: p.py: the program had made no nodes when it {when}\n"
    done = graphmill("python", "--graph", "g.meta", "p.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        1, "graphmill: --graph: the program made no nodes, so g.meta is not written\n"
    )  # fmt: skip
    assert not (tmp_path / "g.meta").exists()


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


def test_numpy_has_the_names_that_it_had(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import numpy as np\n"
        "print(np.zeros(2, np.int).dtype, np.zeros(2, np.float).dtype, np.ones(1, np.bool).dtype, np.object)\n"
        "print(np.NaN, np.Inf, np.float_ is np.float64, np.product([2, 3]), np.asscalar(np.array([4])))\n"
        "print(np.asfarray([1, 2]).dtype, np.asfarray([1], np.float32).dtype, np.asfarray([1], np.int32).dtype)\n"
        "print([len(kinds) for kinds in np.sctypes.values()], np.float32 in np.sctypes['float'])\n"
    )
    done = graphmill("python", str(tmp_path / "program.py"))
    assert done.stdout == (
        "int64 float64 bool <class 'object'>\nnan inf True 6 4\nfloat64 float32 float64\n[4, 4, 4, 3, 5] True\n"
    ), done.stderr
    rows = tmp_path / "rows.py"
    rows.write_text("import numpy as np\nnp.array([[1], [2, 3]])\n")
    assert "write np.array(..., dtype=object)" in graphmill("python", str(rows)).stderr.splitlines()[-1]


def test_modules_run_as_programs(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    done = graphmill("python", "-m", "mod", "a", "-b", cwd=tmp_path)
    assert done.stdout == "__main__ ['a', '-b']\n", done.stderr


def test_programs_go_over_a_module(tmp_path: Path) -> None:
    """All names of a module, the deprecated ones too, without a word about those that nobody has chosen."""
    script = tmp_path / "cells.py"
    script.write_text(
        "import inspect\n"
        "import tensorflow as tf\n"
        "from tensorflow import *\n"
        "from builtins import print\n"  # tf.print has taken its place
        "cells = [x for x in tf.contrib.rnn.__dict__.values() if inspect.isclass(x)\n"
        "         and issubclass(x, tf.contrib.rnn.RNNCell)]\n"
        "print(sorted(x.__name__ for x in cells)[:3], placeholder is tf.placeholder)\n"
        "print('mul' in vars(tf), vars(tf)['nn'] is tf.nn, 'dotted' in vars(tf.nn))\n"
    )
    done = graphmill("python", str(script))
    wanted = "['AttentionCellWrapper', 'BasicLSTMCell', 'BasicRNNCell'] True\nTrue True False\n"
    assert (done.stdout, done.stderr) == (wanted, "")


def test_every_name_of_every_module_can_be_had() -> None:
    from toolkit.tensorflow import modules, names

    for module in ["", *names.modules()]:
        found = vars(modules.module(module))
        assert set(names.below(module)) <= set(found), module


def test_a_module_in_packages_that_import_tensorflow(tmp_path: Path) -> None:
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "outer" / "__init__.py").write_text("from tensorflow.python.util import nest\n")
    (package / "mod.py").write_text("import outer\nprint(__name__, outer.nest.is_sequence([1]))\n")
    done = graphmill("python", "-m", "outer.inner.mod", cwd=tmp_path)
    assert done.stdout == "__main__ True\n", done.stderr
    done = graphmill("python", "-m", "outer.innr.mod", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, "graphmill: error: --module: there is no module 'outer.innr.mod' here\n"
    )  # fmt: skip


def test_a_program_that_is_not_there() -> None:
    done = graphmill("python", "nowhere.py")
    assert (done.returncode, done.stderr) == (2, "graphmill: error: nowhere.py: there is no such program\n")
    done = graphmill("python", "--trce", "nowhere.py")
    assert done.returncode == 2
    assert done.stderr.startswith("graphmill: error: --trce is no option of graphmill python")


LOGARITHMS = """
import tensorflow as tf
x = tf.placeholder(tf.float32, [None], name="x")
y = tf.math.log(x, name="y")
for values in ([1.0, 2.0], [1.0, 0.0]):
    with tf.Session() as sess:
        print(sess.run(y, {x: values}))
"""


def test_programs_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "logs.py").write_text(LOGARITHMS)
    done = graphmill("python", "--profile", "--trace", "logs.json", "--graph", "logs.meta", "logs.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Log" in done.stdout and "by node" in done.stdout
    events = json.loads((tmp_path / "logs.json").read_text())["traceEvents"]
    assert [event["args"]["node"] for event in events if event["name"] == "Log"] == ["y", "y"]
    assert "Log" in graphmill("inspect", str(tmp_path / "logs.meta")).stdout

    (tmp_path / "stopped.py").write_text(LOGARITHMS + "raise KeyboardInterrupt\n")
    done = graphmill("python", "--profile", "stopped.py", cwd=tmp_path)
    assert done.returncode != 0
    assert "by node" in done.stdout

    done = graphmill("python", "--check-numerics", "logs.py", cwd=tmp_path)
    assert done.returncode == 1
    *frames, last = done.stderr.splitlines()
    assert last.startswith("toolkit.errors.InvalidArgumentError: node 'y': Log makes values that are not finite")
    assert not any("toolkit" in line for line in frames), "frames of the library are left out"

    done = graphmill("python", "--trace", "nowhere/logs.json", "logs.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "graphmill: error: --trace: nowhere/logs.json: there is no folder 'nowhere'\n"


def test_mistakes_of_a_program_are_shown_as_its_own(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(
        "import tensorflow as tf\nx = tf.placeholder(tf.float32, [2], name='x')\n"
        "with tf.Session() as sess:\n    sess.run(x + 1, {x: [1.0]})\n"
    )
    done = graphmill("python", str(script))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "line 4" in lines[1]
    assert lines[-1].endswith("cannot feed a value of shape [1] for 'x:0', which has shape [2]")


def test_a_file_does_not_hold_the_python_functions_of_its_program(tmp_path: Path) -> None:
    script = tmp_path / "call.py"
    script.write_text(
        "import tensorflow as tf\ntf.py_func(lambda x: x + 1, [tf.constant(1.0)], tf.float32, name='called')\n"
    )
    out = tmp_path / "call.meta"
    assert graphmill("build", str(script), "-o", str(out)).returncode == 0
    for allowed in ([], ["--allow", "python"], ["--trust"]):
        done = graphmill("run", str(out), "--fetch", "called", *allowed)
        assert done.returncode == (3 if allowed else 2)
        assert "node 'called': " in done.stderr
        assert "it calls a Python function of the program that made the graph, which is not in the file" in done.stderr


def test_a_timeline_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from toolkit import tensorflow as tf
    from toolkit.runtime.probes import trace
    from toolkit.tensorflow.watching import Watching

    monkeypatch.setattr(trace, "TraceProbe", functools.partial(trace.TraceProbe, limit=2))
    watching = Watching(profile=True)
    with watching.looking(), tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        session.run(tf.tanh(tf.exp(tf.negative(tf.sin(x)))), {x: 1.0})
    assert "the timeline is cut after 2 kernels; " in capsys.readouterr().err
    assert watching.profile_lines()
