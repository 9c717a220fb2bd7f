"""run --sandbox: the same results from a child that the kernel holds to the policy, even where its code does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.patience import HUNG, until
from tests.policy.reaching import constant
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.policy import sandbox
from toolkit.policy.rules import Policy

#: what somebody may try who has taken over the process; each line prints what came of it
TRIES = """
import os, socket, subprocess, threading
from pathlib import Path
from toolkit.runtime.training.hooks.base import Hook

def attempt(name, job):
    try:
        job()
        print(name, "done", flush=True)
    except OSError:
        print(name, "denied", flush=True)

class Tries(Hook):
    def begin(self, *_, **__):
        attempt("read", lambda: Path(SECRET).read_bytes())
        attempt("list", lambda: os.listdir(os.path.dirname(SECRET)))
        attempt("write", lambda: Path(SECRET + ".new").write_bytes(b"x"))
        attempt("delete", lambda: os.unlink(SECRET))
        attempt("chmod", lambda: os.chmod(SECRET, 0o777))
        attempt("link", lambda: os.link(SECRET, OWN + "/link"))
        attempt("socket", lambda: socket.socket().close())
        attempt("fork", lambda: os.fork() or os._exit(0))
        attempt("program", lambda: subprocess.run(["/bin/true"], check=True))
        attempt("signal", lambda: os.kill(PARENT, 0))
        attempt("environment", lambda: Path(f"/proc/{PARENT}/environ").read_bytes())
        attempt("own", lambda: os.listdir(OWN))
        thread = threading.Thread(target=attempt, args=("thread", lambda: Path(SECRET).read_bytes()))
        thread.start()
        thread.join()
"""


def graphmill(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "commands.main", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A model that adds one in a folder of its own, and a secret beside it."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([2])})
    graph.add("Add", "y", [x, constant(graph, "one", 1, dtypes.float32)], attrs={"T": dtypes.float32})
    graph.add("Assert", "fail", [constant(graph, "no", False, dtypes.bool_)], attrs={"T": []})
    (tmp_path / "model").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_bytes(b"key")
    write_model(from_graph(graph), tmp_path / "model" / "a.pb")
    return tmp_path


def is_whole() -> bool:
    """Whether this system can enforce everything."""
    try:
        return not sandbox.missing()
    except UsageError:
        return False


def test_the_same_results_and_exit_codes(place: Path) -> None:
    if not is_whole():  # then it says so, and what is missing
        told = graphmill("run", "model/a.pb", "--fetch", "y", "--sandbox", cwd=place).stderr
        assert "sandbox" in told and ("nothing can be enforced" in told or "not" in told)
        return
    feed = ["--feed", "x=[1,2]"]
    for args in (["--fetch", "y", *feed], ["--target", "fail"], ["--fetch", "z"]):
        free = graphmill("run", "model/a.pb", *args, cwd=place)
        held = graphmill("run", "model/a.pb", *args, "--sandbox", cwd=place)
        assert (held.returncode, held.stdout, held.stderr) == (free.returncode, free.stdout, free.stderr)
    made = graphmill("run", "model/a.pb", "--fetch", "y", *feed, "--sandbox", "--out", "out/y.npz", cwd=place)
    assert made.returncode == 2 and "there is no folder" in made.stderr
    made = graphmill("run", "-v", "model/a.pb", "--fetch", "y", *feed, "--sandbox", "--out", "y.npz", cwd=place)
    assert made.returncode == 0, made.stderr
    assert np.load(place / "y.npz")["y"].tolist() == [2, 3]
    assert "sandbox: files (Landlock" in made.stderr and "sandbox: system calls (seccomp)" in made.stderr


def test_what_the_kernel_denies(place: Path) -> None:
    secret, own = str(place / "secret" / "key"), str(place / "model")
    text = f"SECRET = {secret!r}\nOWN = {own!r}\nPARENT = {os.getpid()}\n{TRIES}"
    (place / "tries.py").write_text(text)
    args = ["run", "model/a.pb", "--fetch", "y", "--feed", "x=[1,2]", "--hook", "tries.py", "--steps", "1"]
    if not is_whole():
        assert graphmill(*args, "--sandbox", cwd=place).stderr
        return
    ended = graphmill(*args, "--sandbox", cwd=place)
    assert ended.returncode == 0, ended.stderr
    came = dict(line.split() for line in ended.stdout.splitlines() if line.endswith(("done", "denied")))
    assert {name for name, what in came.items() if what == "done"} == {"own"}, ended.stdout
    assert len(came) == 13
    assert (place / "secret" / "key").read_bytes() == b"key"


#: says when steps run, in which process, and takes its time after each
TELL = """
import os, time
from toolkit.runtime.training.hooks.base import Hook

class Tell(Hook):
    def after_run(self, *_):
        print("step in", os.getpid(), flush=True)
        time.sleep(0.05)
"""


@pytest.mark.parametrize(
    ("number", "code", "to"),
    [(signal.SIGINT, 130, "parent"), (signal.SIGINT, 130, "group"), (signal.SIGTERM, 0, "group"),
     (signal.SIGKILL, -9, "parent")],
)  # fmt: skip
def test_signals_reach_the_child(place: Path, number: signal.Signals, code: int, to: str) -> None:
    """What is sent to the parent, which is all that anybody sees, ends the run as it would without a sandbox."""
    if not is_whole():
        return  # what there is instead is tested above
    (place / "tell.py").write_text(TELL)
    args = ["model/a.pb", "--fetch", "y", "--feed", "x=[1,2]", "--steps", "100000", "--hook", "tell.py"]
    command = [sys.executable, "-m", "commands.main", "run", *args, "--sandbox"]
    with subprocess.Popen(
        command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stdout is not None and running.stderr is not None
        started = running.stdout.readline().split()
        assert started[:2] == ["step", "in"], running.stderr.read()
        (os.kill if to == "parent" else os.killpg)(running.pid, number)
        assert running.wait(HUNG) == code
        running.stdout.read()  # to its end: nobody holds it any more
        told = running.stderr.read()
    child = Path(f"/proc/{started[2]}/stat")
    until(lambda: not child.exists() or " Z " in child.read_text(), "the child's end")
    if number != signal.SIGKILL:
        assert f"stopped by {number.name} after" in told and "Traceback" not in told


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_signals_before_the_child_is_ready(place: Path, number: signal.Signals, code: int) -> None:
    script = place / "slow.py"
    script.write_text(
        "import os, signal, sys\n"
        "from toolkit.policy import sandbox\n"
        "os.kill(os.getppid(), int(sys.argv[2]))\n"
        "while not signal.sigpending(): pass\n"
        "try: sandbox.heed_signals()\n"
        "except KeyboardInterrupt: sys.exit(130)\n"
    )
    code_of = (
        "import sys; from pathlib import Path; from toolkit.policy.sandbox import *\n"
        f"sys.exit(run_confined(Path({str(script)!r}), Confinement([], [], True, True), ['{int(number)}']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code_of], capture_output=True, text=True, timeout=300, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (code, "")


def test_a_sandbox_of_what_is_trusted_makes_no_sense(place: Path) -> None:
    ended = graphmill("run", "model/a.pb", "--fetch", "y", "--sandbox", "--trust", cwd=place)
    assert ended.returncode == 2 and "--sandbox and --trust do not go together" in ended.stderr


def test_where_nothing_can_be_enforced_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "landlock", None)
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(UsageError, match=r"nothing can be enforced here: .*graphmill\[sandbox\]"):
        sandbox.missing()


def test_folders_of_a_policy(tmp_path: Path) -> None:
    policy = Policy(read=(str(tmp_path), "s3://b/c")).with_write(f"{tmp_path}/new/m*", tmp_path / "logs")
    wanted = sandbox.confinement_of(policy, [str(tmp_path / "missing")], [])
    assert wanted.read == [str(tmp_path)]
    assert wanted.write == [str(tmp_path), str(tmp_path / "new")]  # "logs" may be a file's name as well
    assert (tmp_path / "new").is_dir() and not (tmp_path / "logs").exists()
    wanted = sandbox.confinement_of(policy, [], [str(tmp_path / "logs")])
    assert wanted.write == [str(tmp_path / "logs"), str(tmp_path / "new")]
    (tmp_path / "a*").mkdir()
    assert sandbox.confinement_of(Policy.of_model(tmp_path / "a*"), [], []).read == [str(tmp_path / "a*")]
    assert wanted.network and not wanted.process
    assert sandbox.parse('{"read": [], "write": [], "network": false, "process": true}').process


def test_a_file_that_is_not_there_yet_is_written_as_without_a_sandbox(place: Path) -> None:
    if not is_whole():
        return  # `test_the_same_results_and_exit_codes` says what happens then
    graph = Graph()
    path = constant(graph, "path", f"{place}/out/text".encode(), dtypes.string)
    graph.add("WriteFile", "write", [path, constant(graph, "text", b"text", dtypes.string)])
    write_model(from_graph(graph), place / "model" / "w.pb")
    (place / "out").mkdir()
    for extra in ([], ["--sandbox"]):
        args = ("run", "model/w.pb", "--target", "write", "--allow", f"write={place}/out/text", *extra)
        told = graphmill(*args, cwd=place)
        assert told.returncode == 0, told.stderr
        assert (place / "out/text").read_bytes() == b"text"
        (place / "out/text").unlink()
