"""A plugin that runs the garbage collector right after a failed test, which closes the connections that the test left
open. If they were closed later, an unrelated test would fail.
"""

import gc
import sys
import warnings
from collections.abc import Generator

import pytest

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    if item.stash.get(_FAILED, False):
        collect_leaks()
    return result


def collect_leaks() -> None:
    """Close the connections that no code refers to, without a warning."""
    # these variables hold the frames of the failed test
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    report, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    finally:
        sys.unraisablehook = report
