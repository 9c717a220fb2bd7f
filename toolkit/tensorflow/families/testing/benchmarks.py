# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.test.Benchmark: classes with methods `benchmark...`, which `tf.test.main()` runs with --benchmarks=PATTERN."""

from __future__ import annotations

import inspect
import numbers
import os
import re
import statistics
import time
from typing import Any

from schemas import config_pb2, rewriter_config_pb2, test_log_pb2
from toolkit.client.construction import session_stack
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.framework import session as sessions
from toolkit.tensorflow.families.platform.timeline import Timeline

#: the environment variable that says what the files of reports begin with; without it reports are printed
REPORTS = "TEST_REPORT_FILE_PREFIX"

#: the classes that programs have written, in the order in which they did
written: list[type[Benchmark]] = []


class Benchmark:
    """Base of classes whose methods `benchmark...` measure and report."""

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        written.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Whether it is this class, which measures nothing."""
        return cls is Benchmark

    def report_benchmark(
        self, iters: Any = None, cpu_time: Any = None, wall_time: Any = None, throughput: Any = None,
        extras: Any = None, name: Any = None, metrics: Any = None,
    ) -> None:  # fmt: skip
        """Print a BenchmarkEntries message, or write it where TEST_REPORT_FILE_PREFIX says.

        Raises:
            TypeError: extras is no dict, or metrics no list of dicts with a name and a value.
            IOError: there is such a file.
        """
        name = _name_of_caller(name)
        log().info(
            "Benchmark [%s] iters: %s, wall_time: %s, cpu_time: %s, throughput: %s, extras: %s, metrics: %s",
            name, iters, wall_time, cpu_time, throughput, extras, metrics,
        )  # fmt: skip
        times = {"iters": iters, "cpu_time": cpu_time, "wall_time": wall_time, "throughput": throughput}
        entry = test_log_pb2.BenchmarkEntry(
            name=name, extras=_extras(extras), metrics=_metrics(metrics),
            **{key: value for key, value in times.items() if value is not None},
        )  # fmt: skip
        _report(test_log_pb2.BenchmarkEntries(entry=[entry]))

    def run_op_benchmark(
        self, sess: Any, op_or_tensor: Any, feed_dict: Any = None, burn_iters: int = 2, min_iters: int = 10,
        store_trace: bool = False, store_memory_usage: bool = True, name: Any = None, extras: Any = None, mbs: Any = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Run it `min_iters` times and report the median; returns what was reported, with the trace where one is kept.

        The runtime tells of no memory that its allocators had at most, so `store_memory_usage` adds nothing.
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict=feed_dict)
        times = [_seconds(sess, op_or_tensor, feed_dict) for _ in range(min_iters)]
        median = statistics.median(times) if times else -1
        extras = {} if extras is None else extras
        report = {
            "iters": min_iters, "wall_time": median, "extras": extras, "name": name, "throughput": mbs / median,
        }  # fmt: skip
        self.report_benchmark(**report)
        if store_trace:
            extras["full_trace_chrome_format"] = _trace(sess, op_or_tensor, feed_dict)
        return report

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or one of its own."""
        session = session_stack.get_default_session()
        if session is not None:
            return session.run(tensors)
        with sessions.Session(config=benchmark_config()) as own:
            return own.run(tensors)


def benchmark_config() -> config_pb2.ConfigProto:
    """A ConfigProto that keeps dependencies as they were written."""
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.dependency_optimization = rewriter_config_pb2.RewriterConfig.OFF
    return config


def run_benchmarks(pattern: str) -> None:
    """Run the methods whose `module.Class.method` a regular expression finds; "all": all of them."""
    for cls in list(written):
        instance = None
        for method in dir(cls):
            full = f"{cls.__module__}.{cls.__name__}.{method}"
            if not method.startswith("benchmark") or not callable(getattr(cls, method)):
                continue
            if pattern == "all" or re.search(pattern, full):
                instance = instance or cls()
                getattr(instance, method)()


def _seconds(sess: Any, fetched: Any, feed_dict: Any) -> float:
    start = time.perf_counter()
    sess.run(fetched, feed_dict=feed_dict)
    return time.perf_counter() - start


def _trace(sess: Any, fetched: Any, feed_dict: Any) -> str:
    metadata = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
    sess.run(fetched, feed_dict=feed_dict, options=options, run_metadata=metadata)
    return Timeline(metadata.step_stats).generate_chrome_trace_format()


def _name_of_caller(name: Any) -> str:
    """`Class.method` of the outermost method of a benchmark that is running, or `Class.name`."""
    found: Any = None
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), Benchmark):
            found = frame
        frame = frame.f_back
    return f"{type(found.f_locals['self']).__name__}.{name or found.f_code.co_name}"


def _extras(extras: Any) -> dict[str, Any]:
    if extras is not None and not isinstance(extras, dict):
        raise TypeError(f"extras is a dict, not {type(extras).__name__}")
    found: dict[str, Any] = extras or {}
    return {
        key: test_log_pb2.EntryValue(double_value=float(value))
        if isinstance(value, numbers.Real)
        else test_log_pb2.EntryValue(string_value=str(value))
        for key, value in found.items()
    }


def _metrics(metrics: Any) -> list[Any]:
    if metrics is not None and not isinstance(metrics, list):
        raise TypeError(f"metrics is a list of dicts, not {type(metrics).__name__}")
    made: list[Any] = []
    for metric in metrics or []:
        lacking = [key for key in ("name", "value") if key not in metric]
        if lacking:
            raise TypeError(f"the metric {metric} has no '{lacking[0]}'")
        entry = test_log_pb2.MetricEntry(name=metric["name"], value=metric["value"])
        for bound in ("min_value", "max_value"):
            if bound in metric:
                getattr(entry, bound).value = metric[bound]
        made.append(entry)
    return made


def _report(entries: test_log_pb2.BenchmarkEntries) -> None:
    prefix = os.environ.get(REPORTS)
    if prefix is None:
        print(entries)
        return
    path = prefix + entries.entry[0].name.replace("/", "__")
    with open(path, "xb") as out:
        out.write(entries.SerializeToString())
