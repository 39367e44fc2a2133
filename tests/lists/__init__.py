"""Every list and every statistic of a busy world, held to a reading of all its records."""
