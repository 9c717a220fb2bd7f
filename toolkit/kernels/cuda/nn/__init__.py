"""Made kernels of neural networks: products, convolutions, pools and what works channel by channel.

They define the ops on GPUs wherever no library is, and are what is proven on the SIMT machine.
"""
