"""Boletos: the barcode of a bank slip and the line that a payer types, as Febraban defines them.

A generated code names the bank 999, which does not exist: its check digits are right, as clients
check them, but no bank can pay it.
"""

from datetime import date

from stdnum import luhn

from ..core.clock import DAY, SECOND
from .calendar import BEHIND_UTC_MS, day_of, is_working_day

BANK = "999"
REAL = "9"
# A due factor is the days since this one. It was 9999 on 21 February 2025, and 1000 the day after.
_FIRST_DAY = (date(1997, 10, 7) - date(1970, 1, 1)).days


def due_at(created: int) -> int:
    """When a boleto is due (ms): at 23:59:59 in Brasília on the third banking day after its
    creation (ms).
    """
    closes = created
    for _ in range(3):
        closes = closes_at(closes + DAY)
    return closes


def closes_at(instant: int) -> int:
    """23:59:59 in Brasília (ms) of the first banking day that is not before the day of an
    instant (ms).
    """
    day = day_of(instant)
    while not is_working_day(day):
        day += 1
    return (day + 1) * DAY + BEHIND_UTC_MS - SECOND


def barcode(amount_cents: int, due: int, number: int) -> str:
    """The 44 digits of a charge that is due on the Brazilian day of an instant (ms).

    `number` makes it unique: its last 25 digits fill the bank's free field. An amount has at most
    ten digits of cents, and the contract allows fewer.
    """
    due_factor = (day_of(due) - _FIRST_DAY - 1000) % 9_000 + 1000
    rest = f"{due_factor}{amount_cents:010}{number % 10**25:025}"
    return f"{BANK}{REAL}{modulo_11(BANK + REAL + rest)}{rest}"


def line(code: str) -> str:
    """The 47 digits that a payer types for a barcode: three fields, each with a digit of modulo 10,
    then the rest.
    """
    bank, check, rest, free = code[:4], code[4], code[5:19], code[19:]
    fields = (bank + free[:5], free[5:15], free[15:])
    return "".join(field + luhn.calc_check_digit(field) for field in fields) + check + rest


def modulo_11(digits: str) -> int:
    """The check digit of a barcode without it: weights 2 to 9 from the right; 10 and
    11 become 1.
    """
    total = sum(int(digit) * (2 + place % 8) for place, digit in enumerate(reversed(digits)))
    check = 11 - total % 11
    return check if check < 10 else 1
