"""What a task asks of Ray, and what is missing where Ray has no room for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.cluster.ray.library import ray
from toolkit.formats.settings.cluster import Task

#: names in a cluster file to Ray's
_RAY_NAMES = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}
#: what Ray says of every node, besides what it was given
_OWN = ("object_store_memory",)


def request_of(task: Task) -> dict[str, float]:
    """What a task asks for, by Ray's names: what its row says; by default a CPU, and a GPU for each of its GPUs."""
    asked = {_RAY_NAMES.get(name, name): amount for name, amount in task.resources.items()}
    return {"CPU": 1.0, "GPU": float(task.devices.get("GPU", 0)), **asked}


def options_of(request: Mapping[str, float]) -> dict[str, Any]:
    """A request as `ActorClass.options` takes it."""
    own = {name: amount for name, amount in request.items() if name not in _RAY_NAMES.values() and amount}
    options: dict[str, Any] = {"num_cpus": request.get("CPU", 0), "num_gpus": request.get("GPU", 0), "resources": own}
    if request.get("memory"):
        options["memory"] = int(request["memory"])
    return options


def nodes() -> list[dict[str, float]]:
    """What each host of the cluster has in all."""
    return [dict(each["Resources"]) for each in ray().nodes() if each["Alive"]]


def lacking(requests: Mapping[str, Mapping[str, float]], hosts: Sequence[Mapping[str, float]]) -> str:
    """What the cluster does not have; "" where it has room for all tasks when nothing else runs on it.

    Args:
        requests: by the task's name.
        hosts: what each of them has.
    """
    for name, request in requests.items():
        if not any(_fits(request, host) for host in hosts):
            return f"{name} needs {told(request)}, and no host of the Ray cluster has that; there is {_hosts(hosts)}"
    left = [dict(host) for host in hosts]
    for name, request in sorted(requests.items(), key=lambda item: -sum(item[1].values())):
        room = next((host for host in left if _fits(request, host)), None)
        if room is None:
            total: dict[str, float] = {}
            for each in requests.values():
                for kind, amount in each.items():
                    total[kind] = total.get(kind, 0) + amount
            return (
                f"the {len(requests)} tasks need {told(total)} together, and there is no room left for {name}; "
                f"there is {_hosts(hosts)}"
            )
        for kind, amount in request.items():
            room[kind] = room.get(kind, 0) - amount
    return ""


def _fits(request: Mapping[str, float], host: Mapping[str, float]) -> bool:
    return all(host.get(kind, 0) >= amount for kind, amount in request.items() if amount)


def told(request: Mapping[str, float]) -> str:
    """Amounts for people: 2 CPU, 1 GPU, 4.0 GiB memory."""
    parts = [
        f"{amount / 2**30:.1f} GiB {kind}" if kind in ("memory", *_OWN) else f"{amount:g} {kind}"
        for kind, amount in request.items()
        if amount
    ]
    return ", ".join(parts) or "nothing"


def _hosts(hosts: Iterable[Mapping[str, float]]) -> str:
    """What the hosts have, without the names that Ray gives them."""
    shown = [
        told({kind: host[kind] for kind in sorted(host) if not kind.startswith("node:") and kind not in _OWN})
        for host in hosts
    ]
    return "; ".join(shown) or "no host at all"
