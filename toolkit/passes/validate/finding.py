"""What a rule found."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import Any

from toolkit.errors import UsageError, did_you_mean


class Severity(enum.IntEnum):
    """How bad a finding is; larger is worse."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        return self.name.lower()

    @staticmethod
    def parse(text: str) -> Severity:
        """Read "error", "warning" or "note".

        Raises:
            UsageError: it is something else.
        """
        for severity in Severity:
            if severity.label == text:
                return severity
        labels = [severity.label for severity in reversed(Severity)]
        raise UsageError(
            f"'{text}' is not a severity" + did_you_mean(text, labels, then=f"expected {', '.join(labels)}")
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
        rule: the rule's id, "structure/dangling-input".
        file: as it was given on the command line, or found below a folder that was.
        node: the node, or None when it is about the file or graph as a whole.
        function: the function whose body the node is in; "" for the graph itself.
        graph: the tags of the SavedModel's graph, where there are several; else "".
        fix: what to do about it.
    """

    rule: str
    severity: Severity
    message: str
    file: str
    node: str | None = None
    function: str = ""
    graph: str = ""
    fix: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for the same finding in a later run, whatever its severity: baselines are lists of these."""
        key = "\0".join([self.rule, self.file, self.graph, self.function, self.node or "", self.message])
        return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    @property
    def place(self) -> str:
        """Where in the file: "function 'f', node 'n'"; "" for the whole."""
        parts = [f"graph {self.graph}"] if self.graph else []
        if self.function:
            parts.append(f"function '{self.function}'")
        if self.node is not None:
            parts.append(f"node '{self.node}'")
        return ", ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """The object that `--format json` prints; `node`, `function` and `graph` are null where they do not apply."""
        return {
            "rule": self.rule,
            "severity": self.severity.label,
            "file": self.file,
            "node": self.node,
            "function": self.function or None,
            "graph": self.graph or None,
            "message": self.message,
            "fix": self.fix,
            "fingerprint": self.fingerprint,
        }
