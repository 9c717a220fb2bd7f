"""tf.profiler, and tf.contrib.tfprof, which it was before."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.profiling.option_builder": "profiler.ProfileOptionBuilder",
    "toolkit.tensorflow.profiling.profiler": """
        profiler.profile profiler.write_op_log contrib.tfprof.model_analyzer.print_model_analysis
        contrib.tfprof.model_analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS
        contrib.tfprof.model_analyzer.FLOAT_OPS_OPTIONS contrib.tfprof.model_analyzer.PRINT_ALL_TIMING_MEMORY
    """,
}
