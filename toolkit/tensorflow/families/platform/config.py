# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.config: the devices of this machine, threads and switches. What has nothing to switch here says what is so."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.errors import UnimplementedError
from toolkit.kernels import device_types
from toolkit.kernels.device_options import DeviceOptions


class PhysicalDevice(NamedTuple):
    """A processor of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that graphs name."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """How a processor is cut into devices."""

    memory_limit: Any = None
    experimental_priority: Any = None
    experimental_device_ordinal: Any = None


_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


class _Settings:
    """What programs have set; sessions without a ConfigProto of their own heed threads and devices."""

    intra_op_threads = 0
    inter_op_threads = 0
    soft_placement = True
    log_placement = False
    visible = True
    devices: Any = None
    gpus: Any = None  # numbers of those that are visible; None: all
    gpu_memory: Any = None  # bytes
    gpu_growth: Any = None
    deterministic: Any = None
    device_policy: Any = None
    synchronous: Any = None
    jit: Any = ""
    optimizer: Any = None


settings = _Settings()


def list_physical_devices(device_type: Any = None) -> list[PhysicalDevice]:
    found = [_CPU] if device_type in (None, "CPU") else []
    return found + _gpus() if device_type in (None, "GPU") else found


def _gpus() -> list[PhysicalDevice]:
    return [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(_count_gpus())]


def _count_gpus() -> int:
    """Those of the machine, which stay as many when some are hidden."""
    if _known_gpus[0] is None:
        _known_gpus[0] = device_types.there("GPU")
    return _known_gpus[0]


#: how many there were before any was hidden; None: nobody has looked
_known_gpus: list[int | None] = [None]


def list_logical_devices(device_type: Any = None) -> list[LogicalDevice]:
    found: list[LogicalDevice] = []
    if settings.visible and device_type in (None, "CPU"):
        cpus = range(len(settings.devices or [None]))
        found += [LogicalDevice(f"/device:CPU:{number}", "CPU") for number in cpus]
    if device_type in (None, "GPU"):
        found += [LogicalDevice(f"/device:GPU:{number}", "GPU") for number in range(visible_gpus())]
    return found


def visible_gpus() -> int:
    """How many GPUs sessions have."""
    return _count_gpus() if settings.gpus is None else len(settings.gpus)


def gpu_options() -> DeviceOptions:
    """What programs have said about GPUs here."""
    return DeviceOptions(
        memory=settings.gpu_memory,
        grows=settings.gpu_growth,
        visible=None if settings.gpus is None else tuple(settings.gpus),
        deterministic=settings.deterministic,
    )


def experimental_list_devices() -> list[str]:
    return [f"/job:localhost/replica:0/task:0{device.name}" for device in list_logical_devices()]


def get_visible_devices(device_type: Any = None) -> list[PhysicalDevice]:
    found = [_CPU] if settings.visible and device_type in (None, "CPU") else []
    gpus = _gpus() if device_type in (None, "GPU") else []
    return found + [gpu for number, gpu in enumerate(gpus) if settings.gpus is None or number in settings.gpus]


def set_visible_devices(devices: Any, device_type: Any = None) -> None:
    chosen = devices if isinstance(devices, list | tuple) else [devices] if devices is not None else []
    for device in chosen:
        _known(device)
        if device_type not in (None, device.device_type):
            raise ValueError(f"{device.name} is no {device_type}")
    if device_type in (None, "CPU"):
        settings.visible = _CPU in chosen
    if device_type in (None, "GPU"):
        settings.gpus = [_gpus().index(device) for device in chosen if device.device_type == "GPU"]


def get_logical_device_configuration(device: Any) -> Any:
    _known(device)
    if device == _CPU:
        return settings.devices
    limit = settings.gpu_memory
    return None if limit is None else [LogicalDeviceConfiguration(memory_limit=limit >> 20)]


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Cut the processor into several devices, or say how much of a GPU's memory is used; sessions have that.

    Raises:
        UnimplementedError: a GPU is to be several devices.
    """
    _known(device)
    if device.device_type == "GPU":
        if len(logical_devices) != 1:
            raise UnimplementedError(
                f"{device.name} cannot be {len(logical_devices)} devices: a GPU is one here; CPUs can be several"
            )
        limit = logical_devices[0].memory_limit
        settings.gpu_memory = None if limit is None else int(limit * (1 << 20))
        return
    if any(each.memory_limit is not None for each in logical_devices):
        raise ValueError("devices of a CPU share its memory; leave memory_limit out")
    settings.devices = list(logical_devices)


class VirtualDeviceConfiguration(NamedTuple):
    """How a processor is cut into devices, as 1.x knows it."""

    memory_limit: Any = None


def get_virtual_device_configuration(device: Any) -> Any:
    return get_logical_device_configuration(device)


def set_virtual_device_configuration(device: Any, virtual_devices: Any) -> None:
    """As `set_logical_device_configuration`."""
    set_logical_device_configuration(device, virtual_devices)


def _known(device: Any) -> None:
    there = [_CPU, *_gpus()]
    if device not in there:
        raise ValueError(f"there is no device {device}; there is: {', '.join(each.name for each in there)}")


def get_memory_growth(device: Any) -> Any:
    _require_gpu(device)
    return settings.gpu_growth


def set_memory_growth(device: Any, enable: bool) -> None:
    """Whether memory of GPUs is taken as it is needed, which is so anyway unless a limit is set."""
    _require_gpu(device)
    settings.gpu_growth = bool(enable)


def _require_gpu(device: Any) -> None:
    if getattr(device, "device_type", None) != "GPU":
        raise ValueError(f"{getattr(device, 'name', device)}: memory growth is a setting of GPUs")
    _known(device)


def enable_op_determinism() -> None:
    """Have every step give the same bits each time, on GPUs too, where that takes some speed."""
    settings.deterministic = True


def get_intra_op_parallelism_threads() -> int:
    return settings.intra_op_threads


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    settings.intra_op_threads = num_threads


def get_inter_op_parallelism_threads() -> int:
    return settings.inter_op_threads


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    settings.inter_op_threads = num_threads


def get_soft_device_placement() -> bool:
    return settings.soft_placement


def set_soft_device_placement(enabled: bool) -> None:
    settings.soft_placement = enabled


def get_log_device_placement() -> bool:
    return settings.log_placement


def set_log_device_placement(enabled: bool) -> None:
    settings.log_placement = enabled


def get_device_policy() -> str:
    return settings.device_policy or "silent"


def set_device_policy(device_policy: Any) -> None:
    if device_policy not in (None, "explicit", "warn", "silent", "silent_for_int32"):
        raise ValueError(f"'{device_policy}' is no policy; expected explicit, warn, silent or silent_for_int32")
    settings.device_policy = device_policy


def get_synchronous_execution() -> bool:
    return settings.synchronous is not False


def set_synchronous_execution(enable: Any) -> None:
    settings.synchronous = enable


def get_jit() -> Any:
    return settings.jit


def set_jit(enabled: Any) -> None:
    """XLA's compiler is not here; programs are compiled by graphmill's own, always."""
    settings.jit = "autoclustering" if enabled is True else enabled or ""


def get_experimental_options() -> dict[str, Any]:
    return dict(settings.optimizer or {})


def set_experimental_options(options: Any) -> None:
    settings.optimizer = {**(settings.optimizer or {}), **options}


def functions_run_eagerly() -> bool:
    return False


def experimental_functions_run_eagerly() -> bool:
    return False


def run_functions_eagerly(run_eagerly: bool) -> None:
    _refuse_eager(run_eagerly)


def experimental_run_functions_eagerly(run_eagerly: bool) -> None:
    _refuse_eager(run_eagerly)


def _refuse_eager(run_eagerly: bool) -> None:
    if run_eagerly:
        raise UnimplementedError("functions are graphs here and never run eagerly; call them in a session")


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any, job_name: str = "localhost", task_index: int = 0, protocol: Any = None,
    make_master_device_default: bool = True, cluster_device_filters: Any = None,
) -> None:  # fmt: skip
    raise UnimplementedError("other processes are reached over gRPC, which graphmill does not have; run in one process")


def experimental_connect_to_host(remote_host: Any = None, job_name: str = "worker") -> None:
    raise UnimplementedError("other hosts are reached over gRPC, which graphmill does not have; run in one process")
