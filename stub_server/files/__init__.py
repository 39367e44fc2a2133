"""Floor 5: worlds as bytes: files that carry one, and a directory in which they outlive the process."""
