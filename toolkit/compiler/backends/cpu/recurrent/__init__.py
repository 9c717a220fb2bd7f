"""Loops over time that are LSTM or GRU layers, found and made one operation each: code of our own, or a primitive."""
