"""Reusable numerics of *Attention, Rederived*: one idea a module, no file, no YAML, no Sphinx."""

__version__ = "0.1.0"
