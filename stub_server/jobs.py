"""What the clock does when something is due: job name -> function."""

from collections.abc import Mapping
from types import MappingProxyType

from .sandbox import Job

JOBS: Mapping[str, Job] = MappingProxyType({})
