"""Floor 12: recordings sent again to a server of this process, and compared with what was answered."""
