"""tf.contrib.cudnn_rnn: recurrent layers that cuDNN computes, and their weights as cells and checkpoints have them."""
