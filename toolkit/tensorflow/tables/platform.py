"""tf.logging, app, flags, gfile, errors, test, and the switches of TensorFlow 2."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.platform.services": """
        logging.log logging.debug logging.info logging.warn logging.warning logging.error logging.fatal logging.vlog
        logging.flush logging.get_verbosity logging.set_verbosity logging.log_every_n logging.log_first_n logging.log_if
        logging.TaskLevelStatusMessage get_logger app.run gfile.GFile gfile.FastGFile gfile.Exists gfile.IsDirectory
        gfile.ListDirectory gfile.Glob gfile.MakeDirs gfile.MkDir gfile.Remove gfile.DeleteRecursively gfile.Rename
        gfile.Copy gfile.Stat gfile.Walk io.gfile.exists io.gfile.isdir io.gfile.listdir io.gfile.glob=gfile_glob
        io.gfile.makedirs io.gfile.mkdir io.gfile.remove io.gfile.rmtree io.gfile.rename io.gfile.copy io.gfile.stat
        io.gfile.join io.gfile.walk test.get_temp_dir test.main=test_main test.is_built_with_cuda test.is_gpu_available
        test.gpu_device_name test.test_src_dir_path disable_eager_execution disable_v2_behavior disable_v2_tensorshape
        disable_tensor_equality disable_control_flow_v2 control_flow_v2_enabled executing_eagerly
        executing_eagerly_outside_functions
    """,
    "toolkit.tensorflow.families.platform.flags": """
        flags.FLAGS flags.DEFINE_string flags.DEFINE_integer flags.DEFINE_float flags.DEFINE_boolean flags.DEFINE_bool
        flags.DEFINE_list flags.DEFINE_enum flags.DEFINE_multi_string flags.DEFINE_multi_integer
        flags.DEFINE_multi_float flags.DEFINE_multi_enum flags.mark_flag_as_required flags.mark_flags_as_required
    """,
    "toolkit.errors": """
        errors.OpError errors.CancelledError errors.UnknownError errors.InvalidArgumentError
        errors.DeadlineExceededError errors.NotFoundError errors.AlreadyExistsError errors.PermissionDeniedError
        errors.ResourceExhaustedError errors.FailedPreconditionError errors.AbortedError errors.OutOfRangeError
        errors.UnimplementedError errors.InternalError errors.UnavailableError errors.DataLossError

    """,
}
