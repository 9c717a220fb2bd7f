"""Cluster files: which jobs, tasks and devices there are (YAML).

    jobs:                               # job name -> its tasks, numbered from 0
      ps:
        - address: localhost:2222       # host:port; optional for `place`
          devices: {CPU: 1}             # device type -> how many; default {CPU: 1}
      worker:
        - {address: localhost:2223, devices: {CPU: 1, GPU: 2}}
        - localhost:2224                # short for {address: localhost:2224}
        - {resources: {cpus: 2, gpus: 1, memory: 4G, fast_disk: 1}}    # of a Ray cluster (`run --engine ray`)
    default: /job:worker/task:0         # where nodes without a device go; default: the first task

or what TF_CONFIG has, `{"cluster": {"ps": ["localhost:2222"], ...}}`, where "task" may stand beside it and is not read;
or, for one process, just

    local: {CPU: 2}                     # /job:localhost/replica:0/task:0/device:CPU:0 and CPU:1

How fast devices and links are may stand beside that, for `place` (`toolkit.formats.settings.cluster_speeds`):

    speeds: {CPU: {flops: 50G, bandwidth: 10GB, memory: 8G, overhead: 5us}}
    links: {local: {latency: 100us, bandwidth: 10GB}, /job:worker <-> /job:ps: {bandwidth: 100MB}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from toolkit.errors import FormatError, UsageError, did_you_mean, source_name
from toolkit.formats import bounds, io
from toolkit.formats.settings.cluster_speeds import LINK_UNITS, SPEED_UNITS, LinkRow, Speeds
from toolkit.formats.settings.documents import Yaml
from toolkit.formats.settings.quantities import BYTES, COUNT, read_quantity
from toolkit.graph.device import LOCAL_JOB, DeviceSpec

_TOP = ("jobs", "local", "default", "speeds", "links", "cluster")
#: what stands beside "cluster" in TF_CONFIG
_BESIDE = ("task", "environment")
_TASK = ("address", "devices", "resources")
_BYTES, _COUNT = (BYTES, "4G"), (COUNT, "2")


@dataclass(frozen=True, slots=True)
class Task:
    """One process of a cluster.

    Attributes:
        address: host:port, or "" when none is given.
        devices: device type to how many; always one CPU at least.
        resources: what a scheduler reserves for it: "cpus", "gpus", "memory" in bytes, or a name of the cluster's own.
    """

    job: str
    index: int
    address: str
    devices: dict[str, int]
    resources: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def spec(self) -> DeviceSpec:
        return DeviceSpec(self.job, 0, self.index)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The tasks of a cluster, in the file's order.

    Attributes:
        default: the task of nodes that name none.
        source: the file it came from, for messages.
        speeds: how fast devices and links are.
    """

    tasks: tuple[Task, ...]
    default: DeviceSpec
    source: str = ""
    speeds: Speeds = field(default_factory=Speeds)

    @property
    def devices(self) -> list[DeviceSpec]:
        """All devices: the tasks in order, CPUs first."""
        return [
            DeviceSpec(task.job, 0, task.index, kind, index)
            for task in self.tasks
            for kind in sorted(task.devices, key=lambda kind: (kind != "CPU", kind))
            for index in range(task.devices[kind])
        ]


def local_cluster(**counts: int) -> Cluster:
    """The cluster of one process: `local_cluster(CPU=2)`."""
    task = Task(LOCAL_JOB, 0, "", {"CPU": 1} | counts)
    return Cluster((task,), task.spec)


def read_cluster(source: str | Path) -> Cluster:
    """Read a cluster file.

    Raises:
        FormatError: it is no YAML or no cluster; the message has the line.
        GraphmillError: it cannot be read.
    """
    name = str(source)
    return parse_cluster(io.read_bytes(name), source_name(name))


def parse_cluster(text: str | bytes, source: str = "") -> Cluster:
    """Read the text of a cluster file; see `read_cluster`."""
    return _Reader(source).cluster(Yaml(text, source).root)


class _Reader:
    """Reads YAML nodes, which know their lines."""

    def __init__(self, source: str):
        self.source = source

    def fail(self, node: Any, message: str) -> NoReturn:
        line = 1 if node is None else node.start_mark.line + 1
        raise FormatError(message, file=f"{self.source}:{line}")

    def cluster(self, root: Any) -> Cluster:
        if root is None:
            self.fail(None, "the file is empty; a cluster file has 'jobs' or 'local'")
        top = self.mapping(root, "a cluster file", (*_TOP, *_BESIDE))
        if sum(word in top for word in ("jobs", "cluster", "local")) != 1:
            self.fail(root, "a cluster file has either 'jobs' or 'local'")
        if "cluster" in top:
            top["jobs"] = top["cluster"]
        elif beside := [word for word in _BESIDE if word in top]:
            self.fail(top[beside[0]], f"'{beside[0]}' stands only beside 'cluster', as in TF_CONFIG")
        if "local" in top:
            tasks = [Task(LOCAL_JOB, 0, "", self.counts(top["local"]))]
        else:
            tasks = self.jobs(top["jobs"])
        default = tasks[0].spec
        if "default" in top:
            default = self.default(top["default"], tasks)
        cluster = Cluster(tuple(tasks), default, self.source)
        speeds = self.speeds(top["speeds"], cluster.devices) if "speeds" in top else []
        links = self.links(top["links"], cluster.devices) if "links" in top else []
        return replace(cluster, speeds=Speeds(speeds, links))

    def speeds(self, node: Any, devices: list[DeviceSpec]) -> list[tuple[DeviceSpec, Mapping[str, float]]]:
        rows: list[tuple[DeviceSpec, Mapping[str, float]]] = []
        for name, value in self.mapping(node, "'speeds'").items():
            kinds = {device.device_type or "" for device in devices}
            spec = DeviceSpec(device_type=name.upper()) if name.upper() in kinds else self.spec(value, name, devices)
            rows.append((spec, self.quantities(value, f"the speed of {name}", SPEED_UNITS)))
        return rows

    def links(self, node: Any, devices: list[DeviceSpec]) -> list[LinkRow]:
        rows: list[LinkRow] = []
        for name, value in self.mapping(node, "'links'").items():
            given = self.quantities(value, f"the link {name}", LINK_UNITS)
            if name in ("local", "remote"):
                rows.append(LinkRow(name, DeviceSpec(), DeviceSpec(), given))
                continue
            both = " <-> " in name
            ends = [part.strip() for part in name.split(" <-> " if both else " -> ")]
            if len(ends) != 2:
                self.fail(value, f"'{name}' is no link; expected local, remote, or two device names as in 'A -> B'")
            source, target = (self.spec(value, end, devices) for end in ends)
            rows.append(LinkRow("", source, target, given))
            if both:
                rows.append(LinkRow("", target, source, given))
        return rows

    def spec(self, node: Any, text: str, devices: list[DeviceSpec]) -> DeviceSpec:
        """A device name in whole or part that some device fits; `/device:GPU` may leave the number out."""
        try:
            spec = DeviceSpec.parse(text)
        except UsageError as error:
            self.fail(node, error.message)
        if not any(spec.matches(device) for device in devices):
            self.fail(node, f"no device of this cluster fits '{text}'")
        return spec

    def quantities(
        self, node: Any, what: str, units: Mapping[str, tuple[Mapping[str, float], str]]
    ) -> Mapping[str, float]:
        given: dict[str, float] = {}
        for key, value in self.mapping(node, what, tuple(units)).items():
            text = self.scalar(value, f"'{key}'")
            try:
                given[key] = read_quantity(text, *units[key])
            except UsageError as error:
                self.fail(value, f"{key}: {error.message}")
            if key in ("flops", "bandwidth", "memory") and not given[key]:
                self.fail(value, f"{key}: expected more than 0")
        return given

    def jobs(self, node: Any) -> list[Task]:
        tasks: list[Task] = []
        devices = 0
        addresses: dict[str, str] = {}
        for job, entries in self.mapping(node, "'jobs'").items():
            try:
                valid = DeviceSpec.parse(f"/job:{job}").job == job
            except UsageError:
                valid = False
            if not valid:
                self.fail(entries, f"'{job}' is not a job name: letters, digits and _, starting with a letter or _")
            listed = self.sequence(entries, f"the tasks of job '{job}'")
            if not listed:
                self.fail(entries, f"job '{job}' has no tasks")
            for index, entry in enumerate(listed):
                task = self.task(job, index, entry)
                devices += sum(task.devices.values())
                if devices > bounds.DEVICES:
                    self.fail(entry, f"the cluster has more than {bounds.DEVICES:,} devices")
                if task.address and addresses.setdefault(task.address, f"/job:{job}/task:{index}") != (
                    f"/job:{job}/task:{index}"
                ):
                    self.fail(entry, f"the address {task.address} is that of {addresses[task.address]} already")
                tasks.append(task)
        if not tasks:
            self.fail(node, "'jobs' is empty; it maps job names to lists of tasks")
        return tasks

    def task(self, job: str, index: int, node: Any) -> Task:
        if node.id == "scalar":
            return Task(job, index, self.address(node), {"CPU": 1})
        fields = self.mapping(node, f"task {index} of job '{job}'", _TASK)
        address = self.address(fields["address"]) if "address" in fields else ""
        devices = self.counts(fields["devices"]) if "devices" in fields else {"CPU": 1}
        resources = self.resources(fields["resources"]) if "resources" in fields else {}
        return Task(job, index, address, devices, resources)

    def resources(self, node: Any) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, value in self.mapping(node, "'resources'").items():
            text = self.scalar(value, f"the amount of {name}")
            try:
                found[name] = read_quantity(text, *(_BYTES if name == "memory" else _COUNT))
            except UsageError as error:
                self.fail(value, f"{name}: {error.message}")
        return found

    def address(self, node: Any) -> str:
        text = self.scalar(node, "an address")
        host, colon, port = text.rpartition(":")
        if not colon or not host or not _is_number(port) or len(port) > 5 or int(port) > 65535:
            self.fail(node, f"'{text}' is not an address; expected host:port")
        return text

    def counts(self, node: Any) -> dict[str, int]:
        counts = {"CPU": 1}
        for kind, value in self.mapping(node, "'devices'").items():
            text = self.scalar(value, f"the number of {kind} devices")
            if not kind.replace("_", "").isalnum() or kind[0].isdigit():
                self.fail(value, f"'{kind}' is not a device type; expected CPU, GPU or the like")
            most = len(str(bounds.DEVICES))
            if not _is_number(text) or (kind.upper() == "CPU" and len(text) <= most and int(text) < 1):
                least = "at least 1" if kind.upper() == "CPU" else "0 or more"
                self.fail(value, f"the number of {kind} devices must be {least}; it is '{text}'")
            if len(text) > most or int(text) > bounds.DEVICES:
                self.fail(value, f"the number of {kind} devices can be {bounds.DEVICES:,} at most; it is '{text[:40]}'")
            counts[kind.upper()] = int(text)
        return counts

    def default(self, node: Any, tasks: list[Task]) -> DeviceSpec:
        text = self.scalar(node, "'default'")
        try:
            wanted = DeviceSpec.parse(text)
        except UsageError as error:
            self.fail(node, error.message)
        found = [task.spec for task in tasks if wanted.matches(task.spec)]
        if not found or wanted.device_type is not None:
            known = ", ".join(f"/job:{task.job}/task:{task.index}" for task in tasks)
            self.fail(node, f"'default' names no task of this cluster: '{text}'; there are {known}")
        return found[0]

    def mapping(self, node: Any, what: str, allowed: tuple[str, ...] | None = None) -> dict[str, Any]:
        if node.id != "mapping":
            self.fail(node, f"{what} must be a mapping")
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = self.scalar(key, f"a key of {what}")
            if allowed is not None and name not in allowed:
                hint = did_you_mean(name, allowed, then=f"there are {', '.join(allowed)}")
                self.fail(key, f"{what} has no '{name}'{hint}")
            if name in found:
                self.fail(key, f"{what} has '{name}' twice")
            found[name] = value
        return found

    def sequence(self, node: Any, what: str) -> list[Any]:
        if node.id != "sequence":
            self.fail(node, f"{what} must be a list")
        return list(node.value)

    def scalar(self, node: Any, what: str) -> str:
        if node.id != "scalar" or not node.value:
            self.fail(node, f"{what} must be a single value")
        return str(node.value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
