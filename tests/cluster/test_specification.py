"""ClusterSpec of everything that says what a cluster is, beside TensorFlow's."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from schemas import cluster_pb2
from toolkit.cluster.specification import ClusterSpec, from_environment, place_of, read_specification
from toolkit.errors import FormatError
from toolkit.formats.settings.cluster import parse_cluster

JOBS = {"ps": ["a:1"], "worker": ["b:1", "b:2"]}
YAML = "jobs: {ps: [a:1], worker: [{address: b:1, devices: {CPU: 2}}, b:2]}"


def test_all_ways_say_the_same(tmp_path: Path) -> None:
    spec = ClusterSpec(JOBS)
    file, other = tmp_path / "cluster.yaml", tmp_path / "cluster.json"
    file.write_text(YAML)
    other.write_text(json.dumps({"cluster": JOBS}))
    message = cluster_pb2.ClusterDef.FromString(spec.as_cluster_def().SerializeToString())
    for given in (spec, message, {"cluster": JOBS}, {"ps": {0: "a:1"}, "worker": ["b:1", "b:2"]}, parse_cluster(YAML)):
        assert ClusterSpec(given) == spec
        assert ClusterSpec(given).as_dict() == JOBS
    assert read_specification(file) == spec
    assert read_specification(other) == spec


def test_what_tf_config_has_is_a_cluster_file() -> None:
    text = json.dumps({"cluster": JOBS, "task": {"type": "worker", "index": 1}, "environment": "cloud"})
    assert ClusterSpec(parse_cluster(text)) == ClusterSpec(JOBS)
    with pytest.raises(FormatError, match=r"^c:1: 'task' stands only beside 'cluster', as in TF_CONFIG$"):
        parse_cluster("{jobs: {ps: [a:1]}, task: {type: ps, index: 0}}", "c")
    with pytest.raises(FormatError, match=r"^c:1: a cluster file has either 'jobs' or 'local'$"):
        parse_cluster("{cluster: {ps: [a:1]}, jobs: {ps: [a:1]}}", "c")


@pytest.mark.tensorflow
@pytest.mark.parametrize("jobs", [JOBS, {"worker": {1: "b:1", 3: "b:3"}}, {}])
def test_as_tensorflow(tf: ModuleType, jobs: Any) -> None:
    ours, theirs = ClusterSpec(jobs), tf.train.ClusterSpec(jobs)
    assert ours.as_dict() == theirs.as_dict()
    assert ours.jobs == theirs.jobs
    assert bool(ours) == bool(theirs)
    assert ours.as_cluster_def().SerializeToString(deterministic=True) == theirs.as_cluster_def().SerializeToString(
        deterministic=True
    )
    for job in ours.jobs:
        assert ours.task_indices(job) == theirs.task_indices(job)
        assert ours.job_tasks(job) == theirs.job_tasks(job)
        assert ours.num_tasks(job) == theirs.num_tasks(job)


def test_a_job_called_cluster() -> None:
    assert ClusterSpec({"cluster": ["a:1"]}).jobs == ["cluster"]
    assert ClusterSpec({"cluster": {0: "a:1"}}).jobs == ["cluster"]
    assert ClusterSpec({"cluster": {"cluster": ["a:1"]}}).jobs == ["cluster"]


def test_the_environment() -> None:
    assert from_environment({}) is None
    text = json.dumps({"cluster": JOBS, "task": {"type": "worker", "index": 1}, "environment": "cloud"})
    place = from_environment({"TF_CONFIG": text})
    assert place is not None
    assert (place.cluster, place.job, place.task) == (ClusterSpec(JOBS), "worker", 1)
    place = place_of(json.dumps({"cluster": JOBS}))
    assert (place.job, place.task) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]", 'expected an object with "cluster"'),
        ('{"cluster": {"ps": "a:1"}}', "a list or dict of addresses"),
        ('{"cluster": {"ps": [1]}}', "texts, not 1"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps"}}', "'index' is missing"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 4}}', "has no task 4"),
        ('{"cluster": {"ps": ["a:1"]}, "task": {"type": "worker", "index": 0}}', "no job 'worker'"),
    ],
)
def test_what_is_no_place(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as raised:
        from_environment({"TF_CONFIG": text})
    assert str(raised.value).startswith("TF_CONFIG: ")


def test_what_is_no_cluster() -> None:
    with pytest.raises(TypeError, match="not list"):
        ClusterSpec([1])
    with pytest.raises(ValueError, match="no job 'gone'"):
        ClusterSpec(JOBS).num_tasks("gone")
    with pytest.raises(FormatError, match="/job:localhost/task:0 has no address"):
        ClusterSpec(parse_cluster("local: {CPU: 1}"))
