"""Where arrays lie: addresses, allocation, red zones around them, pages that may not be touched."""
