"""CPF numbers from their first nine digits.

Imports nothing, so that the test kit can have it without the server.
"""


def cpf_with_check_digits(nine: str) -> str:
    """Nine digits -> the CPF of eleven.

    Raises ValueError if no valid CPF begins with them (nine equal digits).
    """
    first = _check_digit(nine, range(10, 1, -1))
    whole = nine + first + _check_digit(nine + first, range(11, 1, -1))
    if len(set(whole)) == 1:  # the Receita never issues them
        raise ValueError(f"No valid CPF begins with {nine}.")
    return whole


def _check_digit(digits: str, weights: range) -> str:
    rest = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return "0" if rest < 2 else str(11 - rest)
