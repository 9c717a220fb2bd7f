# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.profiler.ProfileOptionBuilder: the options of a profile, as a dictionary."""

from __future__ import annotations

import copy
from typing import Any

#: the type that trainable variables have in profiles
TRAINABLE = "_trainable_variables"


def _options(**chosen: Any) -> dict[str, Any]:
    return {
        "max_depth": 10000, "min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0, "min_occurrence": 0,
        "order_by": "name", "account_type_regexes": [".*"], "start_name_regexes": [".*"], "trim_name_regexes": [],
        "show_name_regexes": [".*"], "hide_name_regexes": [], "account_displayed_op_only": True, "select": ["micros"],
        "step": -1, "output": "stdout",
    } | chosen  # fmt: skip


class ProfileOptionBuilder:
    """Options set one by one; `build` gives them."""

    def __init__(self, options: Any = None):
        given = _options(max_depth=100, account_displayed_op_only=False) if options is None else options
        self._options: dict[str, Any] = copy.deepcopy(given)

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """How many parameters the trainable variables have."""
        return _options(account_type_regexes=[TRAINABLE], select=["params"])

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """How many floating point operations nodes take."""
        return _options(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1, min_bytes: int = 1, min_accelerator_micros: int = 0, min_cpu_micros: int = 0,
        min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0,
    ) -> dict[str, Any]:  # fmt: skip
        """Which nodes take time and memory."""
        return _options(
            min_bytes=min_bytes, min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes, min_micros=min_micros, min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros, order_by="micros", select=["micros", "bytes"],
        )  # fmt: skip

    def build(self) -> dict[str, Any]:
        return copy.deepcopy(self._options)

    def _with(self, **chosen: Any) -> Any:
        self._options.update(copy.deepcopy(chosen))
        return self

    def with_max_depth(self, max_depth: int) -> Any:
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> Any:
        return self._with(
            min_bytes=min_bytes, min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )  # fmt: skip

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> Any:
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params: int) -> Any:
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> Any:
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> Any:
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: Any) -> Any:
        return self._with(account_type_regexes=account_type_regexes)

    def with_node_names(
        self, start_name_regexes: Any = None, show_name_regexes: Any = None, hide_name_regexes: Any = None,
        trim_name_regexes: Any = None,
    ) -> Any:  # fmt: skip
        given = {"start": start_name_regexes, "show": show_name_regexes, "hide": hide_name_regexes,
                 "trim": trim_name_regexes}  # fmt: skip
        return self._with(**{f"{key}_name_regexes": value for key, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> Any:
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> Any:
        return self._with(output="none")

    def with_stdout_output(self) -> Any:
        return self._with(output="stdout")

    def with_file_output(self, outfile: Any) -> Any:
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: Any) -> Any:
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_pprof_output(self, pprof_file: Any) -> Any:
        return self._with(output=f"pprof:outfile={pprof_file}")

    def order_by(self, attribute: Any) -> Any:
        return self._with(order_by=attribute)

    def select(self, attributes: Any) -> Any:
        return self._with(select=attributes)

    def with_step(self, step: int) -> Any:
        return self._with(step=step)
