"""The vocabulary of checks: eight kinds, each with a negative control it cannot be made without.

A page calls one function of this module per check. The check evaluates its statement and, with the
arguments that the control replaces, the rival statement; it shows one quiet line and leaves a
record in the metadata of the cell's output, from which the ledger is made.

Common arguments of all kinds:

claim, name
    Id of the claim, and a short name unique within it.
tries
    ``"statement"``, ``"amendment"`` or ``"counterexample"``.
control
    `Control`; with ``expected="pass"`` a wrong statement, which must be rejected; with
    ``expected="fail"`` the right one, which must pass.
expected
    ``"fail"`` (only with ``tries="statement"``) shows that the statement as given is rejected.
unit
    Unit of what is measured, "" if it has none.

The control replaces arguments of the check, at least one that makes up its statement, and the
check is evaluated again. What a check only fails to show (an interval across the edge of a margin,
an order within the noise) rejects nothing, neither a statement nor a control. A control counts as
rejected only if it also lies beyond the wider of the two allowances, so that a tighter bound alone
does not make a rival.

Stochastic kinds (`estimate`, `distribution`, `order`, `rate` of replicates) decide at the fixed
two-sided level `LEVEL`, shared among the entries of a vector (Bonferroni); their control must lie
at least ten standard errors away, more where few degrees of freedom make the t quantile large
(`rederive_book.statistics.required_distance`; 32 replicates suffice for ten). The others decide by
proof, or by a rounding bound that follows from the number of operations, the condition and the
size.

Every function returns a `Check` and raises `ValueError`, naming claim and check, on input that it
cannot judge.
"""

from rederive_book.law_checks import distribution
from rederive_book.mean_checks import estimate, order
from rederive_book.proof_checks import certified, symbolic
from rederive_book.rate_checks import rate
from rederive_book.registration import Check, Control
from rederive_book.rounding_checks import bound, identity
from rederive_book.statistics import LEVEL

__all__ = [
    "LEVEL",
    "Check",
    "Control",
    "bound",
    "certified",
    "distribution",
    "estimate",
    "identity",
    "order",
    "rate",
    "symbolic",
]
