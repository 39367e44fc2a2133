"""What a server of one contract wrote, opened by servers of others."""
