"""The machinery of the book: claims, checks, the ledger, the pipeline and the site's extensions."""

__version__ = "0.1.0"
