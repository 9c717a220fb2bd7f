"""Parts of tensors, read and written where they are: splits and joins that copy nothing."""
