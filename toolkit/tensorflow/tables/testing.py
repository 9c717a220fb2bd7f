"""tf.test, tf.config, tf.resource_loader, tf.sysconfig."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.testing.cases": "test.TestCase",
    "toolkit.tensorflow.families.testing.functions": """
        test.assert_equal_graph_def test.compute_gradient test.compute_gradient_error
        test.create_local_cluster test.is_built_with_gpu_support test.is_built_with_rocm test.is_built_with_xla
        test.is_cpu_target_available test.with_eager_op_as_function test.disable_with_predicate test.StubOutForTesting
    """,
    "toolkit.tensorflow.families.testing.benchmarks": "test.Benchmark test.benchmark_config",
    "toolkit.tensorflow.families.platform.config": """
        config.LogicalDevice config.LogicalDeviceConfiguration config.PhysicalDevice
        config.experimental_connect_to_cluster config.experimental_connect_to_host
        config.experimental_functions_run_eagerly config.experimental_run_functions_eagerly
        config.functions_run_eagerly config.get_logical_device_configuration config.get_soft_device_placement
        config.get_visible_devices config.list_logical_devices config.list_physical_devices
        config.optimizer.get_experimental_options config.optimizer.get_jit config.optimizer.set_experimental_options
        config.optimizer.set_jit config.run_functions_eagerly config.set_logical_device_configuration
        config.set_soft_device_placement config.set_visible_devices config.threading.get_inter_op_parallelism_threads
        config.threading.get_intra_op_parallelism_threads config.threading.set_inter_op_parallelism_threads
        config.threading.set_intra_op_parallelism_threads config.experimental.get_device_policy
        config.experimental.get_memory_growth config.experimental.get_synchronous_execution
        config.experimental.set_device_policy config.experimental.set_memory_growth
        config.experimental.set_synchronous_execution config.experimental_list_devices
        config.experimental.VirtualDeviceConfiguration config.experimental.get_virtual_device_configuration
        config.experimental.set_virtual_device_configuration config.experimental.enable_op_determinism
        debugging.get_log_device_placement debugging.set_log_device_placement
    """,
    "toolkit.tensorflow.families.platform.resources": """
        resource_loader.get_data_files_path resource_loader.get_path_to_datafile
        resource_loader.get_root_dir_with_all_resources resource_loader.load_resource
        resource_loader.readahead_file_path sysconfig.get_build_info sysconfig.get_compile_flags sysconfig.get_include
        sysconfig.get_lib sysconfig.get_link_flags errors.UnauthenticatedError errors.exception_type_from_error_code
        errors.error_code_from_exception_type
    """,
}
