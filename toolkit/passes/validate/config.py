"""graphmill.yaml, and baselines of accepted findings.

    validate:
      fail-on: warning
      runs-on: CPU
      compatible-with: released/model
      budgets: {params: 30e6, flops: 8e9}
      exclude: ["third_party/*"]
      rules:
        reproducibility: off                 # a family
        security/file-read: error            # a rule, with another severity
        numerics/*: {severity: warning, paths: ["models/*"]}

The section `run` says what models may touch: graphmill help trust.

The file is taken from the working directory, or --config names it. Where it lies in a model's own folder and --config
does not name it, it may have come with the model, and does not soften its judgement: what it says of security rules,
what it excludes and which findings of security its baseline accepts is not heeded for that model.

Rules are applied in order, the last that fits a finding wins. `paths` are shell patterns of files, in which * spans
slashes; without them a rule goes for all files.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from toolkit.errors import STDIN_NAME, FormatError, GraphmillError, UsageError, did_you_mean
from toolkit.formats import io
from toolkit.formats.settings import settings_file
from toolkit.formats.settings.documents import load_json
from toolkit.passes.validate import registry
from toolkit.passes.validate.finding import Finding, Severity
from toolkit.passes.validate.options import BUDGETS
from toolkit.printable import json_printable

_KEYS = ("fail-on", "runs-on", "compatible-with", "checkpoint", "budgets", "exclude", "rules", "baseline")
_OFF = "off"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a configuration says of some rules.

    Attributes:
        rules: their ids.
        severity: the new one, or None: off.
        paths: patterns of the files it goes for; none means all.
    """

    rules: frozenset[str]
    severity: Severity | None
    paths: tuple[str, ...] = ()

    def fits(self, rule: str, file: str) -> bool:
        if rule not in self.rules:
            return False
        posix = Path(file).as_posix()
        return not self.paths or any(fnmatch.fnmatchcase(posix, pattern) for pattern in self.paths)


@dataclass(frozen=True)
class Config:
    """Which rules apply, how severe they are, and defaults for the command's options.

    Attributes:
        settings: in order; the last that fits wins.
        exclude: patterns of files that are passed over below folders.
        defaults: the remaining keys of the file: fail-on, runs-on, compatible-with, checkpoint, budgets, baseline.
        named: settings that the command line gives; they go after the others, and for all models.
        found: the file, where nobody named it.
    """

    settings: tuple[Setting, ...] = ()
    exclude: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    named: tuple[Setting, ...] = ()
    found: str | None = None

    def severity(self, rule: str, file: str) -> Severity | None:
        """How severe a violation is in a file; None when the rule is off."""
        for setting in reversed(self.named):
            if setting.fits(rule, file):
                return setting.severity
        if not (is_of_security(rule) and self.came_with(file)):
            for setting in reversed(self.settings):
                if setting.fits(rule, file):
                    return setting.severity
        return registry.get(rule).severity

    def came_with(self, file: str) -> bool:
        """Whether it may have come with a model, whose judgement it must not soften then."""
        return self.found is not None and settings_file.came_with("" if file == STDIN_NAME else file, self.found)

    def is_excluded(self, file: str) -> bool:
        """Whether a file below a folder is passed over."""
        posix = Path(file).as_posix()
        return any(fnmatch.fnmatchcase(posix, pattern) for pattern in self.exclude) and not self.came_with(file)

    def accepts(self, finding: Finding, baseline: frozenset[str], *, named: bool) -> bool:
        """Whether a baseline says that a finding is known.

        Args:
            named: the command line gave the baseline.
        """
        heeded = named or not (is_of_security(finding.rule) and self.came_with(finding.file))
        return heeded and finding.fingerprint in baseline

    def changed(self, family: str) -> list[str]:
        """The rules of a family that are off, or have another severity, for some files at least."""
        return [
            rule
            for rule in registry.matching(family)
            if any(each.severity is not registry.get(rule).severity for each in self.settings if rule in each.rules)
        ]

    def is_on(self, family: str, file: str) -> bool:
        """Whether any rule of a family applies to a file."""
        if not self.settings and not self.named:
            return True
        return any(self.severity(rule, file) is not None for rule in registry.matching(family))


def is_of_security(rule: str) -> bool:
    """Whether a rule judges what a model reaches outside of itself."""
    return rule.partition("/")[0] == "security"


def setting(pattern: str, severity: str, paths: Iterable[str] = ()) -> Setting:
    """A setting as it is written: `setting("security/*", "off")`.

    Raises:
        UsageError: no rule has this name, or the severity is none.
    """
    rules = registry.matching(pattern)
    if not rules:
        known = [*registry.FAMILIES, *registry.all_rules()]
        raise UsageError(f"there is no rule '{pattern}'{did_you_mean(pattern, known)}")
    return Setting(frozenset(rules), None if severity == _OFF else Severity.parse(severity), tuple(paths))


def load(path: str | None) -> Config:
    """Read a configuration; without a path graphmill.yaml of this folder, where there is one.

    Raises:
        GraphmillError: it cannot be read, or says something that is not understood.
    """
    found = None if path else settings_file.here()
    path = path or found
    if path is None:
        return Config()
    section = settings_file.read_section(path, "validate")
    try:
        return replace(_parse(section), found=found)
    except GraphmillError as error:
        raise error.at(file=path) from None


def _parse(section: dict[Any, Any]) -> Config:
    for key in section:
        if key not in _KEYS:
            raise UsageError(f"'validate' has no key '{key}'{did_you_mean(str(key), _KEYS)}")
    settings: list[Setting] = []
    for pattern, value in _mapping(section.get("rules") or {}, "'rules'").items():
        paths: list[str] = []
        if isinstance(value, dict):
            entry = _mapping(value, f"rule '{pattern}'")
            for key in entry:
                if key not in ("severity", "paths"):
                    raise UsageError(f"rule '{pattern}' has 'severity' and 'paths', not '{key}'")
            paths = _strings(entry.get("paths") or [], f"'paths' of rule '{pattern}'")
            value = entry.get("severity", "")
        if value is False:  # YAML reads a bare off so
            value = _OFF
        if value in (True, "", "on"):
            setting(str(pattern), "error")  # it must exist
            settings += [
                setting(name, registry.get(name).severity.label, paths) for name in registry.matching(str(pattern))
            ]
            continue
        settings.append(setting(str(pattern), str(value), paths))
    defaults = {key: section[key] for key in section if key not in ("rules", "exclude")}
    if "budgets" in defaults:
        defaults["budgets"] = _budgets(defaults["budgets"])
    for key in ("fail-on", "runs-on", "compatible-with", "checkpoint", "baseline"):
        if key in defaults and not isinstance(defaults[key], str):
            raise UsageError(f"'{key}' must be text; it is {defaults[key]!r}")
    return Config(tuple(settings), tuple(_strings(section.get("exclude") or [], "'exclude'")), defaults)


def _budgets(value: Any) -> dict[str, int]:
    budgets: dict[str, int] = {}
    for key, limit in _mapping(value, "'budgets'").items():
        if key not in BUDGETS:
            raise UsageError(
                f"there is no budget '{key}'" + did_you_mean(str(key), BUDGETS, then=f"known: {', '.join(BUDGETS)}")
            )
        budgets[key] = parse_count(limit, f"the budget '{key}'")
    return budgets


def parse_count(value: Any, what: str) -> int:
    """A number that a user wrote: 30000000, 30e6, "30M", "1.5G".

    Raises:
        UsageError: it is no number.
    """
    text = str(value).strip().replace("_", "").replace(",", "")
    factor = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}.get(text[-1:].lower(), 1)
    try:
        number = float(text[:-1] if factor > 1 else text) * factor
        if isinstance(value, bool) or not number >= 0:
            raise ValueError
        return int(number)
    except (ValueError, OverflowError):
        raise UsageError(f"{what} must be a number such as 30000000, 30e6 or 30M; it is '{value}'") from None


def _mapping(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be a mapping of keys to values")
    return cast("dict[Any, Any]", value)


def _strings(value: Any, what: str) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise UsageError(f"{what} must be a list of texts")
    return cast("list[str]", value)


# -- baselines -------------------------------------------------------------------------------------------


def read_baseline(path: str) -> frozenset[str]:
    """The fingerprints of the findings that a baseline accepts.

    Raises:
        GraphmillError: it cannot be read, or is no baseline.
    """
    try:
        content = load_json(io.read_bytes(path))
        return frozenset(entry["fingerprint"] for entry in content["findings"])
    except (FormatError, ValueError, KeyError, TypeError) as error:
        reason = f" ({error})" if isinstance(error, FormatError) else ""
        message = f"not a baseline of findings{reason}; graphmill validate --write-baseline makes one"
        raise FormatError(message, file=path) from None


def write_baseline(path: str, findings: Iterable[Finding]) -> None:
    """Write the findings that are accepted from now on, in a form that can be read and edited."""
    rows = [
        {"fingerprint": f.fingerprint, "rule": f.rule, "file": f.file, "node": f.node, "message": f.message}
        for f in findings
    ]
    text = json.dumps({"version": 1, "findings": rows}, indent=1, ensure_ascii=False)
    io.write_output(path, json_printable(text) + "\n")
