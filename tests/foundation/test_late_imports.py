"""Late imports, during which the garbage collector rests."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ucle.foundation.threads import import_late

MODULES = {
    "late_outer": "import gc\nfrom ucle.foundation.threads import import_late\n"
    "inner = import_late('late_inner')\ncollects = gc.isenabled()",
    "late_inner": "import gc\ncollects = gc.isenabled()",
    "late_broken": "raise RuntimeError('broken')",
}


@pytest.fixture
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    enabled = gc.isenabled()
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
    (gc.enable if enabled else gc.disable)()


@pytest.mark.usefixtures("_modules")
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_is_as_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    outer = import_late("late_outer")
    assert not outer.collects
    assert not outer.inner.collects
    assert gc.isenabled() == enabled
    with pytest.raises(RuntimeError, match="broken"):
        import_late("late_broken")
    assert gc.isenabled() == enabled
