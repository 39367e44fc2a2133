"""A value of the server's own that breaks the contract."""


class ContractViolation(Exception):
    """A record or an answer of ours that the contract does not allow: a defect, never the client's doing."""
