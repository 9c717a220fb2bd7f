"""Functions of neural networks: activations, convolutions, pools, embeddings, labels of sequences."""
