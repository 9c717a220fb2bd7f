"""graphmill place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.main import run
from toolkit.errors import FormatError
from toolkit.formats.models.model import from_graph, read_graph, write_model
from toolkit.formats.settings.cluster import parse_cluster, read_cluster
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

F = dtypes.float32
SAMPLE = str(Path(__file__).resolve().parent.parent.parent / "samples" / "cluster.yaml")


@pytest.fixture
def model(tmp_path: Path) -> str:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device="/job:ps")
    graph.add("Tanh", "y", [x], attrs={"T": F})
    graph.add("Neg", "z", [x], attrs={"T": F}, device="/device:GPU:0")
    write_model(from_graph(graph), tmp_path / "m.pb")
    return str(tmp_path / "m.pb")


def test_places_and_reports(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, report = str(tmp_path / "o.pb"), tmp_path / "r.json"
    assert run(["place", model, "--cluster", SAMPLE, "--soft-placement", "--report", str(report), "-o", out]) == 0
    devices = {n.name: n.device for n in read_graph(out)}
    ps, worker = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"
    assert devices == {"x": ps, "y": worker, "z": worker}
    facts = json.loads(report.read_text())
    assert facts["devices"] == {worker: 2, worker[:-1] + "1": 0, ps: 1}
    assert facts["nodes"]["z"]["reason"].startswith("soft placement: asked for /device:GPU:0")
    assert facts["nodes"]["y"] == {
        "device": worker, "reason": "default device of /job:worker/replica:0/task:0", "group": None,
    }  # fmt: skip
    captured = capfd.readouterr()
    assert captured.out == "" and f"2 nodes on {worker}" in captured.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--cluster", SAMPLE], "node 'z': no device fits /device:GPU:0; the cluster has /job:ps/replica:0/task:0"),
        ([], "say what devices there are with --cluster"),
        (["--cluster", SAMPLE, "--strategy", "gready"], "did you mean 'greedy'"),
        (["--cluster", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_refused(model: str, tmp_path: Path, args: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "never.pb"
    assert run(["place", model, *args, "-o", str(out)]) == 2
    captured = capfd.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not out.exists()


def test_sample_cluster() -> None:
    cluster = read_cluster(SAMPLE)
    assert [str(d)[5:] for d in cluster.devices] == [
        "ps/replica:0/task:0/device:CPU:0",
        "worker/replica:0/task:0/device:CPU:0",
        "worker/replica:0/task:0/device:CPU:1",
    ]
    assert cluster.default == DeviceSpec("worker", 0, 0)
    assert [t.address for t in cluster.tasks] == ["localhost:2222", "localhost:2223"]


def test_short_forms() -> None:
    assert [str(d) for d in parse_cluster("local: {cpu: 2, GPU: 1}").devices] == [
        f"/job:localhost/replica:0/task:0/device:{d}" for d in ("CPU:0", "CPU:1", "GPU:0")
    ]
    cluster = parse_cluster("jobs: {w: [h:1, {devices: {GPU: 2}}, {address: 'h:2'}]}")
    assert [(t.index, t.address, t.devices) for t in cluster.tasks] == [
        (0, "h:1", {"CPU": 1}), (1, "", {"CPU": 1, "GPU": 2}), (2, "h:2", {"CPU": 1}),
    ]  # fmt: skip
    assert cluster.default == DeviceSpec("w", 0, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml:1: the file is empty"),
        ("jobs: [", "c.yaml:1: not valid YAML"),
        ("- a", "c.yaml:1: a cluster file must be a mapping"),
        ("{}", "either 'jobs' or 'local'"),
        ("jobs: {}", "'jobs' is empty"),
        ("job: {w: [h:1]}", "c.yaml:1: a cluster file has no 'job'; did you mean 'jobs'?"),
        ("jobs: {w: [h:1]}\nlocal: {CPU: 1}", "either 'jobs' or 'local'"),
        ("jobs:\n  w: h:1", "c.yaml:2: the tasks of job 'w' must be a list"),
        ("jobs:\n  w: []", "c.yaml:2: job 'w' has no tasks"),
        ("jobs:\n  a-b: [h:1]", "c.yaml:2: 'a-b' is not a job name"),
        ("jobs:\n  w:\n  - {adress: h:1}", "c.yaml:3: task 0 of job 'w' has no 'adress'; did you mean 'address'?"),
        ("jobs:\n  w: [h]", "c.yaml:2: 'h' is not an address; expected host:port"),
        ("jobs:\n  w: [h:99999]", "'h:99999' is not an address"),
        ("jobs:\n  w: [h:1]\n  v: [h:1]", "c.yaml:3: the address h:1 is that of /job:w/task:0 already"),
        ("jobs:\n  w: [{devices: {CPU: 0}}]", "the number of CPU devices must be at least 1"),
        ("jobs:\n  w: [{devices: {GPU: two}}]", "the number of GPU devices must be 0 or more; it is 'two'"),
        ("jobs:\n  w: [{devices: 2}]", "'devices' must be a mapping"),
        ("jobs: {w: [h:1]}\ndefault: /job:v", "c.yaml:2: 'default' names no task of this cluster: '/job:v'"),
        ("jobs: {w: [h:1]}\ndefault: worker", "'worker' is not a device name"),
        ("local: {CPU: 1}\nlocal: {CPU: 2}", "c.yaml:2: a cluster file has 'local' twice"),
    ],
)
def test_bad_cluster(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_cluster(text, "c.yaml")
    assert message in str(caught.value)
