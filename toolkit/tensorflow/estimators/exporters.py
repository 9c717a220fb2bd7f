# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Exporters: when an evaluated model is written as a SavedModel, and which of them are kept."""

from __future__ import annotations

import abc
import glob
import os
import shutil
from collections.abc import Callable
from typing import Any

from toolkit.formats.records.events import read_events
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators.model_functions import arguments_of


class Exporter(abc.ABC):
    """Writes models after evaluations."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The folder of its models inside of "export"."""

    @abc.abstractmethod
    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any, is_the_final_export: Any
    ) -> Any:
        """Write a model, or None; returns its folder."""


class _SavedModelExporter(Exporter):
    def __init__(self, name: Any, serving_input_receiver_fn: Any, assets_extra: Any, as_text: bool):
        if not name:
            raise ValueError(f"an exporter needs a name; got {name!r}")
        self._name = name
        self._receiver_fn, self._assets_extra, self._as_text = serving_input_receiver_fn, assets_extra, as_text

    @property
    def name(self) -> str:
        return self._name

    def _write(self, estimator: Any, export_path: Any, checkpoint_path: Any) -> Any:
        return estimator.export_saved_model(
            export_path, self._receiver_fn, assets_extra=self._assets_extra, as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )  # fmt: skip


class FinalExporter(_SavedModelExporter):
    """Writes the model when the training is over."""

    def __init__(self, name: Any, serving_input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any, is_the_final_export: Any
    ) -> Any:
        return self._write(estimator, export_path, checkpoint_path) if is_the_final_export else None


class LatestExporter(_SavedModelExporter):
    """Writes the model after every evaluation, and keeps the last ones.

    Raises:
        ValueError: it is to keep fewer than one.
    """

    def __init__(
        self, name: Any, serving_input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False,
        exports_to_keep: Any = 5,
    ):  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._keep = _checked_count(exports_to_keep)

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any, is_the_final_export: Any
    ) -> Any:
        written = self._write(estimator, export_path, checkpoint_path)
        remove_older(export_path, self._keep)
        return written


def _smaller_loss(best_eval_result: Any, current_eval_result: Any) -> bool:
    """Whether the loss of the second evaluation is below that of the first."""
    for result in (best_eval_result, current_eval_result):
        if not result or "loss" not in result:
            raise ValueError(f"BestExporter compares losses, and an evaluation has none: {result}")
    return best_eval_result["loss"] > current_eval_result["loss"]


class BestExporter(_SavedModelExporter):
    """Writes the model when an evaluation is better than the best before.

    Args:
        event_file_pattern: files of earlier evaluations, below the model's folder, so that a training that goes on
            knows the best of them.
        compare_fn: of the best and the current evaluation, whether the current one is better.

    Raises:
        ValueError: there is no function to compare with, or it takes other arguments.
    """

    def __init__(
        self, name: Any = "best_exporter", serving_input_receiver_fn: Any = None,
        event_file_pattern: Any = "eval/*.tfevents.*", compare_fn: Callable[..., Any] = _smaller_loss,
        assets_extra: Any = None, as_text: bool = False, exports_to_keep: Any = 5,
    ):  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if compare_fn is None or set(arguments_of(compare_fn)) != {"best_eval_result", "current_eval_result"}:
            raise ValueError("compare_fn must be a function of best_eval_result and current_eval_result")
        self._compare, self._pattern = compare_fn, event_file_pattern
        self._keep = _checked_count(exports_to_keep)
        self._best: Any = None
        self._knows_earlier = False

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any, is_the_final_export: Any
    ) -> Any:
        if not self._knows_earlier:
            self._knows_earlier = True
            if estimator.model_dir and self._pattern:
                self._best = self._earlier(os.path.join(estimator.model_dir, self._pattern))
        if self._best is not None and not self._compare(best_eval_result=self._best, current_eval_result=eval_result):
            log().info("the evaluation is no better than the best one; nothing is exported")
            return None
        self._best = eval_result
        written = self._write(estimator, export_path, checkpoint_path)
        remove_older(export_path, self._keep)
        return written

    def _earlier(self, pattern: str) -> Any:
        """The best of the evaluations in event files; the current one is there already, as in TensorFlow."""
        best: Any = None
        for path in sorted(glob.glob(pattern)):
            for event in read_events(path):
                found = {value.tag: value.simple_value for value in event.summary.value
                         if value.WhichOneof("value") == "simple_value"}  # fmt: skip
                if found and (best is None or self._compare(best_eval_result=best, current_eval_result=found)):
                    best = found
        return best


def _checked_count(count: Any) -> Any:
    if count is not None and count <= 0:
        raise ValueError(f"exports_to_keep must be above 0; got {count}")
    return count


def remove_older(folder: Any, keep: int | None) -> None:
    """Remove all but the last models of a folder, whose names are times."""
    if keep is None:
        return
    path = os.fsdecode(folder)
    stamps = sorted((name for name in os.listdir(path) if name.isdigit() and len(name) == 10), key=int)
    for name in stamps[:-keep]:
        shutil.rmtree(os.path.join(path, name))
