"""Retry rules: waits after a failed attempt, either the same for every error or by error class.

retry=[10, 60]                                              two retries
retry={HTTPError: [10, 60], ValueError: never}              by class; the most specific class decides
raise NoRetry("the customer does not exist")                dead without a retry, whatever the rules say
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

from batuta.kernel.values import dataclass
from batuta.queue.outcome import Failed, RetryPolicy, Waits, after_seconds

never: Final = Waits(())
"""The rule for errors after which an item is dead without a retry."""
RetryRules: TypeAlias = Mapping[type[Exception], RetryPolicy | Sequence[float]]
Retry: TypeAlias = RetryPolicy | Sequence[float] | RetryRules


class NoRetry(Exception):
    """Raise this error in a task or stage to end the item without a retry. Operators read the reason, for example
    ``NoRetry("no such customer")``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    @property
    def outcome(self) -> Failed:
        return Failed(self.reason, permanent=True)


@dataclass(frozen=True, slots=True)
class RetryByError:
    """Retry policies by error class, with a default policy for all other failures."""

    rules: Mapping[type[Exception], RetryPolicy]
    otherwise: RetryPolicy

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return self.otherwise.wait_after(attempt, chance)

    def of(self, error: Exception) -> RetryPolicy:
        """Return the policy for an error: the policy of the most specific class in the rules, or the default policy."""
        return next((self.rules[kind] for kind in type(error).__mro__ if kind in self.rules), self.otherwise)

    def names(self, error: Exception, base: type[Exception]) -> bool:
        """Return whether the retry rules list the error's class, or one of its base classes up to ``base``."""
        return any(kind in self.rules for kind in type(error).__mro__ if issubclass(kind, base))


def policy_for(policy: RetryPolicy, error: Exception) -> RetryPolicy:
    return policy.of(error) if isinstance(policy, RetryByError) else policy


def retry_policy(retry: Retry | None, otherwise: RetryPolicy) -> RetryPolicy:
    """Build a retry policy from waits in seconds or from rules by error class. ``otherwise`` is the default policy.

    Raises TypeError or ValueError if the rules are invalid.
    """
    if retry is None:
        return otherwise
    if not isinstance(retry, Mapping):
        return _policy(retry, "retry")
    rules = {}
    for kind, rule in retry.items():
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            shown = getattr(kind, "__name__", repr(kind))
            raise TypeError(
                f"retry names {shown}, which is not a class of exceptions: write retry={{OSError: [10, 60]}}"
            )
        rules[kind] = _policy(rule, f"retry of {kind.__name__}")
    return RetryByError(rules, rules.get(Exception, otherwise))


def _policy(rule: Any, what: str) -> RetryPolicy:
    if callable(getattr(rule, "wait_after", None)):
        policy: RetryPolicy = rule
        return policy
    if not isinstance(rule, Sequence) or isinstance(rule, str) or not all(_is_wait(each) for each in rule):
        raise TypeError(f"{what} must be a list of waits in seconds, a policy or never: write [10, 60]")
    return after_seconds(rule)


def _is_wait(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
