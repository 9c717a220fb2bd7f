"""tf.test.Benchmark: what runs, what is reported, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from schemas import test_log_pb2
from toolkit import tensorflow as tf
from toolkit.tensorflow.families.testing import benchmarks


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A program's benchmark, and none of other tests."""
    monkeypatch.setattr(benchmarks, "written", [])

    class Sums(tf.test.Benchmark):
        ran: ClassVar[list[str]] = []

        def benchmarkSmall(self) -> None:  # noqa: N802
            Sums.ran.append("small")
            with tf.Graph().as_default(), tf.Session() as session:
                total = tf.add(1.0, 2.0)
                Sums.report = self.run_op_benchmark(
                    session, total, burn_iters=1, min_iters=3, store_trace=True, extras={"size": 2, "kind": "scalar"},
                    mbs=1,
                )  # fmt: skip

        def benchmarkNamed(self) -> None:  # noqa: N802
            Sums.ran.append("named")
            metrics = [{"name": "error", "value": 0.5, "max_value": 1}]
            self.report_benchmark(iters=5, wall_time=0.25, name="other/name", metrics=metrics)

        def helper(self) -> None:
            raise AssertionError("only methods that are called benchmark... are run")

    return Sums


def _read(path: Path) -> test_log_pb2.BenchmarkEntry:
    return test_log_pb2.BenchmarkEntries.FromString(path.read_bytes()).entry[0]


def test_reports_are_files(sums: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(benchmarks.REPORTS, f"{tmp_path}/of-")
    benchmarks.run_benchmarks("all")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["of-Sums.benchmarkSmall", "of-Sums.other__name"]
    small = _read(tmp_path / "of-Sums.benchmarkSmall")
    assert (small.name, small.iters) == ("Sums.benchmarkSmall", 3)
    assert small.wall_time > 0 and small.throughput == 1 / small.wall_time
    assert (small.extras["size"].double_value, small.extras["kind"].string_value) == (2, "scalar")
    assert (
        "full_trace_chrome_format" not in small.extras
        and "traceEvents" in sums.report["extras"]["full_trace_chrome_format"]
    )
    named = _read(tmp_path / "of-Sums.other__name")
    assert (named.iters, named.wall_time) == (5, 0.25)
    metric = named.metrics[0]
    assert (metric.name, metric.value, metric.max_value.value) == ("error", 0.5, 1)
    assert not metric.HasField("min_value")
    with pytest.raises(FileExistsError):
        benchmarks.run_benchmarks("Named")


def test_a_pattern_says_which(sums: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        tf.test.main(["program", "--benchmarks=Sums.*Named"])
    assert not done.value.code
    assert sums.ran == ["named"]
    assert 'name: "Sums.other/name"' in capsys.readouterr().out


def test_mistakes(sums: Any) -> None:
    assert tf.test.Benchmark.is_abstract() and not sums.is_abstract()

    class Wrong(tf.test.Benchmark):
        def benchmarkIt(self, **report: Any) -> None:  # noqa: N802
            self.report_benchmark(**report)

    for report, message in (
        ({"extras": [1]}, "extras is a dict, not list"),
        ({"metrics": {"name": "a"}}, "metrics is a list of dicts, not dict"),
        ({"metrics": [{"name": "a"}]}, "has no 'value'"),
    ):
        with pytest.raises(TypeError, match=message):
            Wrong().benchmarkIt(**report)


def test_values_and_settings(sums: Any) -> None:
    with tf.Graph().as_default():
        value = tf.constant(3.0)
        assert sums().evaluate(value) == 3.0
        with tf.Session():
            assert sums().evaluate([value]) == [3.0]
    options = tf.test.benchmark_config().graph_options.rewrite_options
    assert options.dependency_optimization == 2  # OFF
