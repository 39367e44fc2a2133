"""What a new sandbox has in it: scenarios, the people and projects that Faker draws, and the lived
past.

Its users get a shop that looks lived in, the same for one scenario, seed and time on every machine,
and `MembershipProvider`, with which their own Faker draws such buyers, projects, plans and prices.
`filling.py` calls the others: begin there. `provider.py`, `people.py` and `catalogue.py` are the
provider, `scenario.py` reads scenario files, and `merchant.py`, `records.py` and `crowd.py` plan a
`Past`, in which everybody acts through the engine. Imports `engine` and above.
"""

from .provider import MembershipProvider

__all__ = ["MembershipProvider"]
