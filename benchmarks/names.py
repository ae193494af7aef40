"""The benchmarks in the order of the page."""

NAMES = ["free_product", "flow", "engine", "smoothing", "pooling", "outliers", "heads", "transport"]
#: Sizes that take minutes or many gigabytes; run on request, and kept.
LARGE = "large"
