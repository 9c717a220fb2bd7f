"""Every field of ConfigProto, RunOptions and RunMetadata has a treatment, and gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from schemas import config_pb2
from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.errors import OpError
from toolkit.runtime.sessions import config_fields
from toolkit.runtime.sessions.config_fields import CONFIG, RUN_METADATA, RUN_OPTIONS, Row, Treatment

MESSAGES: dict[str, tuple[Any, tuple[Row, ...]]] = {
    "ConfigProto": (config_pb2.ConfigProto, CONFIG),
    "RunOptions": (config_pb2.RunOptions, RUN_OPTIONS),
    "RunMetadata": (config_pb2.RunMetadata, RUN_METADATA),
}


def _whole(path: str) -> bool:
    """Messages that rows are about as a whole."""
    return path.split(".")[-1] in ("cluster_def", "step_stats", "partition_graphs", "cost_graph", "function_graphs",
                                   "rewrite_options", "coordination_config", "rpc_options",
                                   "debug_tensor_watch_opts")  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_each_field_has_one_row_and_each_row_a_field(name: str) -> None:
    message, rows = MESSAGES[name]
    fields = [
        f"{field}.any" if _whole(field) and config_fields.row_of(rows, field) is None else field
        for field in config_fields.fields_of(message.DESCRIPTOR, without=_whole)
    ]
    used: set[Row] = set()
    for field in fields:
        matching = [row for row in rows if config_fields.row_of((row,), field) is not None]
        assert len(matching) == 1, f"{field}: {matching}"
        used.update(matching)
    assert used == set(rows)


def _settable(message: Any, before: str = "") -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Fields of a message and of those inside, each with what gives it a value that is not its default."""
    for field in message.DESCRIPTOR.fields:
        path = before + field.name
        if field.message_type is None:
            value: Any = {field.CPPTYPE_STRING: "x", field.CPPTYPE_BOOL: True, field.CPPTYPE_ENUM: 1}.get(
                field.cpp_type, 1
            )

            def put(target: Any, name: str = field.name, value: Any = value, many: bool = field.is_repeated) -> None:
                if many:
                    getattr(target, name).append(value)
                else:
                    setattr(target, name, value)

            yield path, put
        elif not field.message_type.GetOptions().map_entry and path.count(".") < 4:
            for inner, fill in _settable(field.message_type._concrete_class(), f"{path}."):

                def put_inside(
                    target: Any, name: str = field.name, fill: Any = fill, many: bool = field.is_repeated
                ) -> None:
                    fill(getattr(target, name).add() if many else getattr(target, name))

                yield inner, put_inside


def test_accepted_fields_change_nothing() -> None:
    with ours.Graph().as_default():
        x = ours.constant(1.0) + 2.0
        count = 0
        for path, fill in _settable(config_pb2.ConfigProto()):
            row = config_fields.row_of(CONFIG, path)
            if row is None or row.treatment is not Treatment.ACCEPTED:
                continue
            config = ours.ConfigProto()
            fill(config)
            with ours.Session(config=config) as session:
                assert session.run(x) == 3.0, path
            count += 1
        assert count > 100
        with ours.Session() as session:
            for path, fill in _settable(config_pb2.RunOptions()):
                row = config_fields.row_of(RUN_OPTIONS, path)
                if row is not None and row.treatment is Treatment.ACCEPTED:
                    options = ours.RunOptions()
                    fill(options)
                    assert session.run(x, options=options) == 3.0, path


def _config(**fields: Any) -> Callable[[Any], Any]:
    """What makes a ConfigProto with such fields, of TensorFlow's class or ours."""

    def make(tf: Any) -> Any:
        config = tf.ConfigProto()
        for path, value in fields.items():
            *way, last = path.split("__")
            target = config
            for part in way:
                target = getattr(target, part)
            setattr(target, last, value)
        return config

    return make


def _cpus(count: int) -> Callable[[Any], Any]:
    return lambda tf: tf.ConfigProto(device_count={"CPU": count})


def _pools(tf: Any) -> Any:
    config = tf.ConfigProto()
    config.session_inter_op_thread_pool.add(num_threads=2)
    config.session_inter_op_thread_pool.add(num_threads=3, global_name="shared")
    return config


def _outcome(tf: Any, config: Any, options: Any = None) -> Any:
    metadata = tf.RunMetadata()
    with tf.Graph().as_default():
        x = tf.constant(1.0) + 2.0
        try:
            with tf.Session(config=None if config is None else config(tf)) as session:
                value = session.run(x, options=None if options is None else options(tf), run_metadata=metadata)
                found = (metadata.session_metadata.name, metadata.session_metadata.version)
                return value, found, len(metadata.partition_graphs), bool(metadata.step_stats.dev_stats), [
                    device.name for device in session.list_devices()
                ]  # fmt: skip
        except Exception as error:
            return type(error).__name__


CASES: dict[str, tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]] = {
    "two CPUs": (_cpus(2), None),
    "no CPU": (_cpus(0), None),
    "threads": (_config(intra_op_parallelism_threads=2, inter_op_parallelism_threads=3), None),
    "as many threads as there are": (_config(intra_op_parallelism_threads=-1, inter_op_parallelism_threads=-1), None),
    "a time that has no end": (_config(operation_timeout_in_ms=-1), None),
    "a long time": (_config(operation_timeout_in_ms=10**6), None),
    "pools": (_pools, lambda tf: tf.RunOptions(inter_op_thread_pool=1)),
    "no such pool": (_pools, lambda tf: tf.RunOptions(inter_op_thread_pool=2)),
    "no pool": (None, lambda tf: tf.RunOptions(inter_op_thread_pool=-1)),
    "less than no pool": (None, lambda tf: tf.RunOptions(inter_op_thread_pool=-2)),
    "one thread": (_config(experimental__executor_type="SINGLE_THREADED_EXECUTOR"), None),
    "the executor there is": (_config(experimental__executor_type="DEFAULT"), None),
    "no such executor": (_config(experimental__executor_type="PARALLEL"), None),
    "a name": (_config(experimental__session_metadata__name="m", experimental__session_metadata__version=3), None),
    "a version below 0": (_config(experimental__session_metadata__version=-1), None),
    "a trace": (None, lambda tf: tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)),
    "graphs": (None, lambda tf: tf.RunOptions(output_partition_graphs=True)),
    "graphs that are not given": (
        _config(experimental__disable_output_partition_graphs=True),
        lambda tf: tf.RunOptions(output_partition_graphs=True),
    ),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", CASES)
def test_obeyed_fields_do_what_tensorflow_does(name: str) -> None:
    config, options = CASES[name]
    with node_oracle.semantics():
        wanted = _outcome(node_oracle.theirs(), config, options)
    assert _outcome(ours, config, options) == wanted


def test_a_step_that_takes_too_long_is_ended() -> None:
    with ours.Graph().as_default():
        taken = ours.FIFOQueue(1, ours.float32).dequeue()  # nobody ever puts anything in
        config = ours.ConfigProto(operation_timeout_in_ms=20)
        with ours.Session(config=config) as session, pytest.raises(ours.errors.DeadlineExceededError):
            session.run(taken)
        with ours.Session() as session, pytest.raises(ours.errors.DeadlineExceededError):
            session.run(taken, options=ours.RunOptions(timeout_in_ms=20))


def test_placements_are_told(capfd: pytest.CaptureFixture[str]) -> None:
    with ours.Graph().as_default():
        with ours.device("/cpu:1"):
            x = ours.placeholder(ours.float32, name="x")
        y = ours.negative(x, name="y")
        config = ours.ConfigProto(device_count={"CPU": 2}, log_device_placement=True)
        with ours.Session(config=config) as session:
            session.run(y, {x: 1.0})
            session.run(y, {x: 1.0})
    assert capfd.readouterr().err == "y: (Neg): /job:localhost/replica:0/task:0/device:CPU:0\n"


def test_sessions_with_a_state_of_their_own_share_none() -> None:
    with ours.Graph().as_default():
        v = ours.Variable(1.0)
        with ours.Session("local://config_fields") as session:
            session.run(v.initializer)
            assert session.run(ours.report_uninitialized_variables()).tolist() == []
            config = ours.ConfigProto(isolate_session_state=True)
            with ours.Session("local://config_fields", config=config) as other:
                assert other.run(ours.report_uninitialized_variables()).tolist() == [b"Variable"]
    ours.Session.reset("local://config_fields")


def test_what_is_refused_says_what_to_do() -> None:
    config = ours.ConfigProto()
    job = config.cluster_def.job.add(name="worker")
    job.tasks[0] = "localhost:1"
    with ours.Graph().as_default():
        x = ours.constant(1.0)
        with ours.Session(config=config) as session:  # one task is this process
            assert session.run(x) == 1.0
        job.tasks[1] = "localhost:2"
        with pytest.raises(OpError, match="give it the target of a server") as raised:
            ours.Session(config=config)
        assert "\n" not in str(raised.value)
        options = ours.RunOptions()
        options.debug_options.debug_tensor_watch_opts.add(node_name="x")
        with ours.Session() as session, pytest.raises(OpError, match="--check-numerics"):
            session.run(x, options=options)
