"""`stub-server verify` and `proxy`: whether another backend is what the contract says."""
