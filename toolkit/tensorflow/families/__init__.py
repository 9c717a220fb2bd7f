"""What implements TensorFlow's names, a module for each family; `toolkit/tensorflow/tables` says which is where."""
