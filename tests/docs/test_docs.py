"""The examples in README.md and docs/ run, and give what they show."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if path.exists()
)
# Pages whose examples run only where all of these are installed.
NEEDS = {
    "docs/frameworks.md": (
        "datasets",
        "jax",
        "pandas",
        "pyarrow",
        "tensorflow",
        "torch",
    ),
}
FENCE = re.compile(r"^\s*```(\w*)")
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def without_fences(text: str) -> str:
    """The page with blank lines for fences, which would end as output."""
    lines = text.splitlines()
    return "\n".join("" if FENCE.match(line) else line for line in lines)


def python_blocks(text: str) -> list[str]:
    blocks = []
    language = None
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence is None:
            if language == "python":
                blocks[-1] += line + "\n"
        elif language is None:
            language = fence[1]
            if language == "python":
                blocks.append("")
        else:
            language = None
    return blocks


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch):
    for package in NEEDS.get(name_of(page), ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make test-frameworks")
    monkeypatch.chdir(tmp_path)
    text = without_fences(page.read_text())
    names = {"np": np, "ps": ps, "__name__": "__main__"}
    test = doctest.DocTestParser().get_doctest(
        text, names, name_of(page), str(page), 0
    )
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_block_is_an_example(page):
    for block in python_blocks(page.read_text()):
        assert ">>>" in block, block


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_of_the_package_exists(page):
    for name in re.findall(r"\bps\.(\w+)", page.read_text()):
        assert hasattr(ps, name), name


def test_the_functions_that_the_readme_lists_exist():
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \w.*? \| (`.*) \|$", text, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 50
    for name in names:
        assert hasattr(ps, name), name
