"""Device names: /job:worker/replica:0/task:1/device:GPU:0, whole or in part (DeviceNameUtils)."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache

from toolkit.errors import ArgumentValueError

_FIELD = re.compile(
    r"/(?:job:(?P<job>[A-Za-z_][A-Za-z0-9_]*)|replica:(?P<replica>\d+|\*)|task:(?P<task>\d+|\*)"
    r"|device:(?P<kind>[A-Za-z_][A-Za-z0-9_]*|\*)(?::(?P<index>\d+|\*))?"
    r"|(?P<short>cpu|gpu|CPU|GPU):(?P<short_index>\d+|\*))"
)
_SHORT_ALONE = re.compile(r"/(?:cpu|gpu)(?=/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device name; None in a field means "any".

    `str()` gives the canonical spelling with the fields that are set; "" when none is.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @staticmethod
    @lru_cache(maxsize=1024)  # millions of nodes ask for a few
    def parse(text: str) -> DeviceSpec:
        """Read a full or partial name; "" is the spec that fits every device.

        Accepts /device:GPU:0, and the old /gpu:0; types are upper-cased.

        Raises:
            ArgumentValueError: the text is not a device name.
        """
        values: dict[str, str] = {}
        position = 0
        while position < len(text):
            if text.startswith("//", position):  # programs write "/" + "/cpu:0", which TensorFlow takes
                position += 1
                continue
            match = _FIELD.match(text, position)
            if match is None:
                raise ArgumentValueError(
                    f"'{text}' is not a device name; expected parts such as /job:worker/task:0/device:CPU:0"
                )
            for key, value in match.groupdict().items():
                if value is None or value == "*":
                    continue
                key = {"short": "kind", "short_index": "index"}.get(key, key)
                if key in values:
                    raise ArgumentValueError(f"device name '{text}' gives its {key} twice")
                values[key] = value
            position = match.end()

        def number(key: str) -> int | None:
            return int(values[key]) if key in values else None

        kind = values.get("kind")
        return DeviceSpec(
            values.get("job"), number("replica"), number("task"), kind.upper() if kind else None, number("index")
        )

    @staticmethod
    def parse_scope(text: str) -> DeviceSpec:
        """As `parse`, of what programs give device scopes: "gpu:0" without the slash, "/cpu" without an index.

        Raises:
            ArgumentValueError: the text is not a device name.
        """
        whole = "/" + text if text and text[0] != "/" else text
        try:
            return DeviceSpec.parse(_SHORT_ALONE.sub(r"\g<0>:*", whole))
        except ArgumentValueError as error:
            raise ArgumentValueError(str(error).replace(f"'{whole}'", f"'{text}'", 1)) from None

    def __str__(self) -> str:
        text = ""
        if self.job is not None:
            text += f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.device_type is not None or self.device_index is not None:
            text += f"/device:{self.device_type or '*'}:{'*' if self.device_index is None else self.device_index}"
        return text

    @property
    def is_full(self) -> bool:
        return None not in (self.job, self.replica, self.task, self.device_type, self.device_index)

    @property
    def task_name(self) -> str:
        """The part that names the process: /job:J/replica:R/task:T."""
        return str(DeviceSpec(self.job, self.replica, self.task))

    @property
    def local_name(self) -> str:
        """The part inside the process: CPU:0."""
        return f"{self.device_type or '*'}:{'*' if self.device_index is None else self.device_index}"

    def matches(self, device: DeviceSpec) -> bool:
        """True when `device` (a concrete one) fits this spec."""
        return all(
            mine is None or mine == theirs
            for mine, theirs in (
                (self.job, device.job),
                (self.replica, device.replica),
                (self.task, device.task),
                (self.device_type, device.device_type),
                (self.device_index, device.device_index),
            )
        )

    def override(self, outer: DeviceSpec) -> DeviceSpec:
        """This spec laid over `outer`: our fields win, the rest is taken from it (nested device scopes)."""
        return DeviceSpec(
            outer.job if self.job is None else self.job,
            outer.replica if self.replica is None else self.replica,
            outer.task if self.task is None else self.task,
            outer.device_type if self.device_type is None else self.device_type,
            outer.device_index if self.device_index is None else self.device_index,
        )

    def intersect(self, other: DeviceSpec, *, soft: bool = False) -> DeviceSpec | None:
        """The spec that fits only what both fit, or None when they contradict.

        With `soft`, a contradiction of types drops type and index, one of indices the index (soft placement).
        """
        job = _agree(self.job, other.job)
        replica = _agree(self.replica, other.replica)
        task = _agree(self.task, other.task)
        kind = _agree(self.device_type, other.device_type)
        index = _agree(self.device_index, other.device_index)
        if _CLASH in (job, replica, task):
            return None
        if _CLASH in (kind, index):
            if not soft:
                return None
            kind, index = (None if kind is _CLASH else kind), None
        return DeviceSpec(job, replica, task, kind, index)  # type: ignore[arg-type]

    def without_type_and_index(self) -> DeviceSpec:
        return replace(self, device_type=None, device_index=None)


_CLASH = object()


def _agree(a: object, b: object) -> object:
    if a is None:
        return b
    return a if b is None or a == b else _CLASH


LOCAL_JOB = "localhost"


def local_device(kind: str = "CPU", index: int = 0) -> DeviceSpec:
    """The full name of a device of this process when no cluster is involved."""
    return DeviceSpec(LOCAL_JOB, 0, 0, kind, index)


def incarnation(device: str) -> int:
    """A number for a device that never restarts; part of rendezvous keys.

    It follows from the name, so that partitions written to files and the process that runs them agree.
    """
    return 1 + zlib.crc32(device.encode())
