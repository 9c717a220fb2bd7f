"""Rule files of `place --rules`: which nodes go to which device (YAML). The first rule that fits a node wins.

    "encoder/*": /job:worker/task:0/device:GPU:0      # a shell pattern of names
    re:^tower_[01]/: /device:GPU:0                    # a regular expression that is searched for
    op = Conv2D and under decoder: /device:GPU:1      # or a query (graphmill help queries)
    "*/summaries/*": /device:CPU:0
    logits/bias: "@logits"                            # with another node
    old/*: ""                                         # forget what the node asks for

What a device leaves out stays what the node asks for: `/device:GPU:0` does not change its job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from toolkit.errors import FormatError, GraphmillError, UsageError, source_name
from toolkit.formats import io
from toolkit.formats.bundle.patterns import REGEX, matcher
from toolkit.formats.settings.documents import Yaml
from toolkit.graph.device import DeviceSpec

#: characters that no name of a node has, so that they tell a query
_QUERY_SIGNS = frozenset(" =~<>()'\"")


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """One rule.

    Attributes:
        pattern: as it was written; a query where `is_query`.
        device: a device name in whole or part, "@node", or "" to forget.
        where: file:line:column.
    """

    pattern: str
    is_query: bool
    device: str
    where: str

    @property
    def spec(self) -> DeviceSpec:
        """The device, where it is none of a node's."""
        return DeviceSpec.parse(self.device)


def read_rules(source: str, check: Callable[[PlacementRule], None] | None = None) -> tuple[PlacementRule, ...]:
    """Read a rule file.

    Args:
        check: what else is looked at; what it raises is told with the rule's place.

    Raises:
        FormatError: it is no such file; with file, line and column.
    """
    return parse_rules(io.read_bytes(source), source_name(source), check)


def parse_rules(
    text: str | bytes, source: str = "", check: Callable[[PlacementRule], None] | None = None
) -> tuple[PlacementRule, ...]:
    """Read the text of a rule file; see `read_rules`."""
    from toolkit.graph.query import parse

    def fail(node: Any, message: str) -> NoReturn:
        mark = node.start_mark
        raise FormatError(message, file=f"{source}:{mark.line + 1}:{mark.column + 1}")

    root = Yaml(text, source).root
    if root is None:
        raise FormatError("the file is empty; a rule is PATTERN: DEVICE", file=f"{source}:1:1")
    if root.id != "mapping":
        fail(root, "a rule file is a mapping of patterns to devices: PATTERN: DEVICE")
    found: dict[str, PlacementRule] = {}
    for key, value in root.value:
        if key.id != "scalar" or not key.value:
            fail(key, "a rule begins with a pattern of node names, or with a query")
        if value.id != "scalar":
            fail(value, f"the rule for '{key.value}' has no device name; expected the like of /job:worker/device:GPU:0")
        pattern = str(key.value)
        if pattern in found:
            fail(key, f"there is a rule for '{pattern}' already, at {found[pattern].where}, and the first one wins")
        mark = key.start_mark
        is_query = not (pattern.startswith(REGEX) or _QUERY_SIGNS.isdisjoint(pattern))
        rule = PlacementRule(pattern, is_query, str(value.value), f"{source}:{mark.line + 1}:{mark.column + 1}")
        try:
            _ = parse(pattern) if is_query else matcher([pattern])
        except UsageError as error:
            fail(key, error.message)
        try:
            if not rule.device.startswith("@"):
                DeviceSpec.parse(rule.device)
            if check is not None:
                check(rule)
        except GraphmillError as error:
            fail(value, error.message)
        found[pattern] = rule
    return tuple(found.values())
