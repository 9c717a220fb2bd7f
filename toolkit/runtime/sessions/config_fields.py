"""What becomes of each field of ConfigProto, RunOptions and RunMetadata.

Programs bring the settings of the machines that they were written on: GPUs, allocators, TensorFlow's own rewriting. A
field is obeyed, or accepted because what it asks for is so anyway, or cannot be told apart from here, or refused
because a program that asks for it would not get what it relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from schemas import config_pb2
from toolkit.errors import InvalidArgumentError, NotFoundError, UnimplementedError


class Treatment(Enum):
    """What becomes of a field."""

    OBEYED = "obeyed"
    ACCEPTED = "accepted without effect"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Row:
    """A field, or all fields below one ("gpu_options.*").

    Attributes:
        why: what it does here; for refused ones, the line that is told.
    """

    field: str
    treatment: Treatment
    why: str


def _rows(treatment: Treatment, *pairs: tuple[str, str]) -> tuple[Row, ...]:
    return tuple(Row(field, treatment, why) for fields, why in pairs for field in fields.split())


_OWN_POOLS = "memory, streams and events of GPUs are managed in graphmill's own way (pools that keep what is freed)"
_OTHER_DEVICES = "for devices of TensorFlow's plugins; ours take their own settings"
_NO_XLA = "there is no XLA and no MLIR here; programs are compiled by graphmill's own compiler"
_NO_CLUSTER = "for sessions of several processes: a master is told of it, one in this process has no use for it"
_REWRITES = "graphmill's compiler rewrites programs its own way, to the same values (run --explain)"

_COSTS = "costs are `graphmill run --measure`'s"
_NO_TASKS = (
    "cluster_def names several tasks, but the session is one in this process; give it the target of a server, as "
    "Session('grpc://HOST:PORT')"
)
_NO_DEBUGGER = (
    "debug_options: TensorFlow's debugger is not here; graphmill python --check-numerics finds what is not finite, "
    "--trace writes what ran"
)

CONFIG: tuple[Row, ...] = (
    *_rows(
        Treatment.OBEYED,
        ("device_count", "CPU: so many devices; GPU: at most so many of those that there are"),
        ("gpu_options.per_process_gpu_memory_fraction", "the part of a GPU's memory that tensors may take"),
        ("gpu_options.allow_growth", "memory is taken as it is needed; so it is anyway unless a fraction is given"),
        ("gpu_options.visible_device_list", "which of the machine's GPUs are /device:GPU:0, GPU:1, ..."),
        ("intra_op_parallelism_threads", "threads of one primitive"),
        ("inter_op_parallelism_threads", "threads for independent kernels of a step, above 1"),
        ("session_inter_op_thread_pool.num_threads", "the first pool's threads, as inter_op_parallelism_threads"),
        ("log_device_placement", "each node of a step with its device, on the standard error"),
        ("operation_timeout_in_ms", "a step that takes longer fails with DEADLINE_EXCEEDED"),
        ("isolate_session_state", "variables of its own, also with a target that names shared ones"),
        ("experimental.executor_type", "SINGLE_THREADED_EXECUTOR: one node after the other; unknown ones are refused"),
        ("experimental.session_metadata.name experimental.session_metadata.version", "told in RunMetadata"),
        ("experimental.disable_output_partition_graphs", "RunOptions.output_partition_graphs is then refused"),
    ),
    *_rows(
        Treatment.ACCEPTED,
        ("placement_period", "TensorFlow does not look at it either"),
        ("device_filters share_cluster_devices_in_session", _NO_CLUSTER),
        ("rpc_options.*", "for calls between processes: servers and sessions at a target obey it"),
        ("gpu_options.allocator_type gpu_options.deferred_deletion_bytes gpu_options.force_gpu_compatible", _OWN_POOLS),
        ("gpu_options.polling_active_delay_usecs gpu_options.polling_inactive_delay_msecs", _OWN_POOLS),
        ("gpu_options.experimental.*", _OWN_POOLS),
        ("pluggable_device_options.*", _OTHER_DEVICES),
        ("allow_soft_placement", "always so: programs come with the devices of the machine they were written on"),
        ("use_per_session_threads", "threads are a session's own, always"),
        ("session_inter_op_thread_pool.global_name", "threads are a session's own, always"),
        ("graph_options.enable_recv_scheduling", "schedule-receives is a pass of `graphmill place`"),
        ("graph_options.optimizer_options.* graph_options.rewrite_options.*", _REWRITES),
        ("graph_options.build_cost_model graph_options.build_cost_model_after", _COSTS),
        ("graph_options.infer_shapes", "shapes are always inferred"),
        ("graph_options.place_pruned_graph", "a step fails by what it needs alone, in either way"),
        ("graph_options.enable_bfloat16_sendrecv", "tensors go from device to device as they are"),
        ("graph_options.timeline_step", "TensorFlow does not look at it either"),
        ("experimental.collective_group_leader experimental.recv_buf_max_chunk", _NO_CLUSTER),
        ("experimental.collective_deterministic_sequential_execution experimental.collective_nccl", _NO_CLUSTER),
        ("experimental.share_session_state_in_clusterspec_propagation", _NO_CLUSTER),
        ("experimental.share_cluster_devices_in_session experimental.enable_multi_host", _NO_CLUSTER),
        ("experimental.coordination_config.* experimental.backend_server_port", _NO_CLUSTER),
        ("experimental.use_numa_affinity experimental.disable_thread_spinning", "where threads run is the system's"),
        ("experimental.optimize_for_static_graph experimental.disable_optimize_for_static_graph",
         "how much of a graph is kept after it is compiled; a graph may go on growing"),
        ("experimental.enable_mlir_bridge experimental.mlir_bridge_rollout experimental.tf2xla_dump_dir", _NO_XLA),
        ("experimental.enable_mlir_graph_optimization experimental.xla_fusion_autotuner_thresh", _NO_XLA),
        ("experimental.xla_prefer_single_graph_cluster experimental.target_tpu experimental.target_gpu", _NO_XLA),
        ("experimental.stream_merge_threshold experimental.use_tfrt experimental.tfrt_use_ifrt", _NO_XLA),
        ("experimental.disable_functional_ops_lowering", _REWRITES),
        ("experimental.disable_eager_executor_streaming_enqueue", "nothing is computed while a program is written"),
        ("experimental.finalize_function_library_runtime experimental.finalize_resource_manager",
         "what a session keeps after its first step is small"),
        ("experimental.online_cost_analysis", "costs are `graphmill run --measure`'s"),
    ),
    *_rows(
        Treatment.REFUSED,
        ("cluster_def.*", _NO_TASKS),
    ),
)  # fmt: skip

RUN_OPTIONS: tuple[Row, ...] = (
    *_rows(
        Treatment.OBEYED,
        ("trace_level", "FULL_TRACE (and lesser ones): RunMetadata.step_stats"),
        ("timeout_in_ms", "a step that takes longer fails with DEADLINE_EXCEEDED"),
        ("inter_op_thread_pool", "must be a pool there is, or -1"),
        ("output_partition_graphs", "RunMetadata.partition_graphs"),
    ),
    *_rows(
        Treatment.ACCEPTED,
        ("report_tensor_allocations_upon_oom", "a step without memory always says what the largest tensors are"),
        ("debug_options.global_step debug_options.reset_disk_byte_usage", "for what is watched, which is refused"),
        ("experimental.*", _NO_CLUSTER),
    ),
    *_rows(
        Treatment.REFUSED,
        ("debug_options.debug_tensor_watch_opts", _NO_DEBUGGER),
    ),
)  # fmt: skip

RUN_METADATA: tuple[Row, ...] = (
    *_rows(
        Treatment.OBEYED,
        ("step_stats", "what ran, and when; with a trace_level"),
        ("partition_graphs", "the graphs that ran; with output_partition_graphs"),
        ("session_metadata.name session_metadata.version", "the session's"),
    ),
    *_rows(
        Treatment.ACCEPTED,
        ("cost_graph", "stays empty: costs are `graphmill run --measure`'s"),
        ("function_graphs.*", "stays empty, as with TensorFlow's sessions: they are of what runs eagerly"),
    ),
)  # fmt: skip


def row_of(rows: tuple[Row, ...], field: str) -> Row | None:
    """The row for a field such as "gpu_options.allow_growth"."""
    for row in rows:
        if row.field == field or (row.field.endswith(".*") and field.startswith(row.field[:-1])):
            return row
    return None


def fields_of(descriptor: Any, before: str = "", without: Callable[[str], bool] = lambda _: False) -> Iterator[str]:
    """The fields of a message that are no messages, those of inner ones behind a dot.

    Args:
        without: which inner messages count as one field.
    """
    for field in descriptor.fields:
        path = before + field.name
        inner = field.message_type
        if inner is None or inner.GetOptions().map_entry or without(path):
            yield path
        else:
            yield from fields_of(inner, f"{path}.", without)


def check_config(config: config_pb2.ConfigProto) -> None:
    """
    Raises:
        UnimplementedError: it asks for what is refused.
        InvalidArgumentError, NotFoundError: a value that TensorFlow refuses as well.
    """
    if sum(len(job.tasks) for job in config.cluster_def.job) > 1:
        raise UnimplementedError(_why(CONFIG, "cluster_def.job"))
    experimental = config.experimental
    if experimental.session_metadata.version < 0:
        raise InvalidArgumentError(
            f"session_metadata.version is {experimental.session_metadata.version}; it starts at 0"
        )
    if experimental.executor_type not in _EXECUTORS:
        known = ", ".join(each or '""' for each in _EXECUTORS)
        raise NotFoundError(f"experimental.executor_type '{experimental.executor_type}': there is {known}")
    if "CPU" in config.device_count and config.device_count["CPU"] <= 0:
        raise NotFoundError(f"device_count: {config.device_count['CPU']} devices of type CPU; there must be 1 at least")


_EXECUTORS = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def check_run_options(options: config_pb2.RunOptions, config: config_pb2.ConfigProto | None) -> None:
    """
    Raises:
        UnimplementedError: it asks for what is refused.
        InvalidArgumentError: it names a pool of threads that the session does not have, or wants the graphs of a
            session that was told to give none.
    """
    if options.debug_options.debug_tensor_watch_opts:
        raise UnimplementedError(_why(RUN_OPTIONS, "debug_options.debug_tensor_watch_opts"))
    pools = 1 if config is None else max(1, len(config.session_inter_op_thread_pool))
    if not -1 <= options.inter_op_thread_pool < pools:
        raise InvalidArgumentError(
            f"there is no inter_op_thread_pool {options.inter_op_thread_pool}; there are {pools}, from 0 on (-1: none)"
        )
    if config is not None and config.experimental.disable_output_partition_graphs and options.output_partition_graphs:
        raise InvalidArgumentError("output_partition_graphs: the session was made with disable_output_partition_graphs")


def _why(rows: tuple[Row, ...], field: str) -> str:
    row = row_of(rows, field)
    assert row is not None
    return row.why
