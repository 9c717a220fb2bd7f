# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The options of a profile, checked: which nodes count, which are shown, in which order, where to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import GraphError, UsageError, did_you_mean

#: what can be shown of nodes, with what stands above it and its explanation, in the order of the columns
COLUMNS = {
    "params": ("# parameters", "param: Number of parameters (in the Variable)."),
    "float_ops": (
        "# float_ops",
        "flops: Number of float operations. Note: Please read the implementation for the math behind it.",
    ),
    "device": ("assigned devices", "device: which device is placed on."),
    "op_types": (
        "op types",
        (
            "op_types: The attributes of the operation, includes the Kernel name device placed on and user-defined "
            "strings."
        ),
    ),
    "occurrence": ("op count (run|defined)", "occurrence: The number of times it occurs"),
    "input_shapes": ("input shapes", "input shape: The shape of input tensors"),
}
_MEASURED = frozenset({
    "micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "accelerator_micros", "cpu_micros",
    "tensor_value",
})  # fmt: skip
ORDERS = ("name", "params", "float_ops", "occurrence", "depth")
#: lower bounds, in the order in which options are printed
_BOUNDS = ("bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros", "accelerator_micros", "cpu_micros",
           "params", "float_ops", "occurrence")  # fmt: skip
_PATTERNS = ("account_type", "start_name", "trim_name", "show_name", "hide_name")


@dataclass(frozen=True)
class Options:
    """What `profile` is to do."""

    depth: int = 10
    least: dict[str, int] = field(default_factory=dict[str, int])
    step: int = -1
    order: str = "name"
    patterns: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    only_shown: bool = False
    select: list[str] = field(default_factory=list[str])
    output: str = "stdout"
    file: str = ""

    @staticmethod
    def of(given: Any) -> Options:
        """Of a dictionary, as `ProfileOptionBuilder.build` makes it.

        Raises:
            UsageError: a value is not of its kind, or asks for what is measured elsewhere.
        """
        if not isinstance(given, dict):
            raise UsageError(f"options of a profile are a dictionary, not {type(given).__name__}: "
                             "tf.profiler.ProfileOptionBuilder makes one")  # fmt: skip
        patterns = {key: _patterns(key, given.get(f"{key}_regexes", [])) for key in _PATTERNS}
        output, file = _output(given)
        return Options(
            _number(given, "max_depth", 10), {key: _number(given, f"min_{key}", 0) for key in _BOUNDS},
            _number(given, "step", -1), _order(given.get("order_by", "name")), patterns,
            bool(given.get("account_displayed_op_only", False)), _selected(given.get("select", [])), output, file,
        )  # fmt: skip

    def matches(self, which: str, text: str) -> bool:
        """Whether one of the patterns is the whole text."""
        return any(re.fullmatch(pattern, text) for pattern in self.patterns[which])

    def shows(self, name: str) -> bool:
        return self.matches("show_name", name) and not self.matches("hide_name", name)

    def accounts(self, types: set[str]) -> bool:
        return any(self.matches("account_type", each) for each in types) or self.patterns["account_type"] == [".*"]

    @property
    def columns(self) -> list[str]:
        """What is selected, in the order in which it is printed."""
        return [each for each in COLUMNS if each in self.select]

    def lines(self) -> list[str]:
        """As TensorFlow prints them."""
        rows = {"max_depth": str(self.depth), **{f"min_{key}": str(self.least[key]) for key in _BOUNDS}}
        rows |= {"step": str(self.step), "order_by": self.order}
        rows |= {f"{key}_regexes": ",".join(self.patterns[key]) for key in _PATTERNS}
        rows |= {"account_displayed_op_only": str(self.only_shown).lower(), "select": ",".join(sorted(self.select))}
        rows["output"] = f"{self.output}:"
        return [f"-{key:<27}{value}" for key, value in rows.items()]


def _number(given: dict[str, Any], key: str, default: int) -> int:
    value = given.get(key, default)
    if not isinstance(value, int):
        raise UsageError(f"options of a profile: {key} is a whole number, not {value!r}")
    return value


def _not_counted(option: str, what: str) -> str:
    return f"{option} of a profile: {what} are not counted here; `graphmill python --profile` says where they go"


def _order(value: Any) -> str:
    if value in _MEASURED:
        raise UsageError(_not_counted("order_by", value))
    if value not in ORDERS:
        raise UsageError(f"order_by of a profile: expected one of {', '.join(ORDERS)}, got {value!r}"
                         f"{did_you_mean(str(value), ORDERS)}")  # fmt: skip
    return value


def _patterns(key: str, value: Any) -> list[str]:
    if isinstance(value, str) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"options of a profile: {key}_regexes is a list of patterns, not {value!r}")
    for each in value:
        try:
            re.compile(each)
        except re.error as error:
            raise UsageError(f"options of a profile: {key}_regexes: {each!r} is no pattern: {error}") from None
    return list(value)


def _selected(value: Any) -> list[str]:
    for each in value:
        if each in _MEASURED:
            raise UsageError(_not_counted("select", each))
        if each not in COLUMNS:
            raise UsageError(f"select of a profile: expected some of {', '.join(COLUMNS)}, got {each!r}"
                             f"{did_you_mean(str(each), COLUMNS)}")  # fmt: skip
    return list(value)


def _output(given: dict[str, Any]) -> tuple[str, str]:
    """Where the report goes, and the file's name."""
    output, file = str(given.get("output", "stdout")), given.get("dump_to_file", "")
    if file:
        return "file", str(file)
    if output in ("stdout", "none"):
        return output, ""
    if output.startswith("file:outfile="):
        return "file", output.removeprefix("file:outfile=")
    raise UsageError(f"output of a profile: expected stdout, none or file:outfile=NAME, got {output!r}; "
                     "`graphmill python --trace` writes timelines")  # fmt: skip


def unknown_view(cmd: Any) -> GraphError:
    return GraphError(f"cmd of a profile: expected scope or op, got {cmd!r}; views of code and of data flow are not "
                      "made here: `graphmill explore` shows the graph")  # fmt: skip
