"""What every application scenario shares: processes, servers, sites, clients. Makes bench/lib importable."""

import os
import sys

# At the end: its scenarios.py is not the folder of that name here.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
