"""A plugin that closes the connections left open by a failed test. It collects them as soon as the test ends, because
later they would make an unrelated test fail.
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
        _collect_leaks()
    return result


def _collect_leaks() -> None:
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
