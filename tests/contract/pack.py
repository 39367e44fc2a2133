"""The files that `stub-server init schemathesis` writes, importable as they are where it
writes them.
"""

import sys
from pathlib import Path

PACK = Path(__file__).parents[2] / "fixtures" / "init" / "schemathesis"
sys.path.insert(0, str(PACK))
