"""One thread and reproducible examples for every test."""

import os

from hypothesis import settings

# Before anything imports NumPy: threads are counted when it loads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

settings.register_profile("book", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("book")
