"""The exception for records and responses of the server itself that break the contract."""


class ContractViolation(Exception):
    """A record or response of the server breaks the contract: a defect of the server, never of the request."""
