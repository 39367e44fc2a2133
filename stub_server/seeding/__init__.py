"""Floor 5: for filling a world with a believable Brazilian data from one seed."""
