"""What a model may touch when `graphmill run` runs it: its own folder, what the command line names, what is allowed.

    run:                                    # in graphmill.yaml
      allow: [read=/data, write=/tmp/out, network]
      trust: [models/mine]                  # models that may do everything

graphmill.yaml is taken from the working directory; one that lies in the model's own folder came with the model, and
grants it nothing unless it is named with --config.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.bundle import paths
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.settings import settings_file
from toolkit.policy.rules import Policy, exactly
from toolkit.runtime.jobs.options import RunOptions

_KEYS = ("allow", "trust")


def policy_of(source: str | Path, options: RunOptions) -> Policy:
    """The policy of one run.

    Args:
        source: the model's file or folder.

    Raises:
        GraphmillError: what is allowed, or the configuration, is not understood.
    """
    allowed, trusted = _configured(str(source), options.config)
    if options.trust or trusted:
        return Policy.everything()
    policy = Policy.of_model(source).with_read(*map(exactly, options.named_files))
    if options.checkpoint is not None:
        policy = policy.with_read(_checkpoint(options.checkpoint))
    if options.save is not None:
        policy = policy.with_write(options.save + "*")
    for folder in (options.checkpoint_dir, options.summaries):
        policy = policy if folder is None else policy.with_write(exactly(folder))
    try:
        policy = policy.allowing(*allowed)
    except UsageError as error:
        raise error.at(file=options.config or settings_file.here()) from None
    return policy.allowing(*options.allow)


def granted(source: str | Path, options: RunOptions) -> str | None:
    """What graphmill.yaml of the working directory lets a model do, for people; None where it is not heeded.

    What --config names, --allow and --trust were given for this run: nobody needs to be told.
    """
    if options.trust or options.config is not None:
        return None
    allowed, trusted = _configured(str(source), None)
    if not allowed and not trusted:
        return None
    what = "everything that you may do" if trusted else ", ".join(allowed)
    return f"{settings_file.here()} allows this model: {what}"


def _checkpoint(given: str) -> str:
    return given if paths.is_folder(given) else find_prefix(given) + "*"


def _configured(source: str, config: str | None) -> tuple[list[str], bool]:
    """What graphmill.yaml allows a model, and whether it trusts it."""
    path = config or settings_file.here()
    if path is None or (config is None and settings_file.came_with(source, path)):
        return [], False
    section = settings_file.read_section(path, "run")
    for key in section:
        if key not in _KEYS:
            raise UsageError(f"'run' has no key '{key}'{did_you_mean(str(key), _KEYS)}", file=path)
    allowed = _strings(section.get("allow"), "allow", path)
    base = Path(path).parent
    trusted = {os.path.realpath(base / name) for name in _strings(section.get("trust"), "trust", path)}
    return [_from(base, item) for item in allowed], os.path.realpath(source) in trusted


def _from(base: Path, item: str) -> str:
    """A permission whose path is relative to the file that it stands in."""
    key, equals, value = item.partition("=")
    if not equals or "://" in value or value.startswith("~"):
        return item
    return f"{key}={base / value}"


def _strings(value: Any, key: str, path: str) -> list[str]:
    if value is None:
        return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise UsageError(f"'{key}' of 'run' must be a list of texts", file=path)
    return items
