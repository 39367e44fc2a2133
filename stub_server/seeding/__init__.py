"""For filling a store with a believable Brazilian world from one seed."""
