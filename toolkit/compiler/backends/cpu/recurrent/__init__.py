"""Loops over time that are LSTM or GRU layers, found and put into one primitive each."""
