"""tools/check_includes.py finds what is wrong with a tree, and says where."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/check_includes.py"
HEADER = "#pragma once\n"


class Tree:
    """A source tree that is right until a test makes it wrong."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "", listed: bool = True) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if listed and file.suffix in {".cc", ".h"}:
            with open(file.parent / "CMakeLists.txt", "a") as listing:
                listing.write(f"  SRCS {file.name}\n")

    def check(self) -> tuple[int, list[str]]:
        result = subprocess.run(
            [sys.executable, TOOL, self.root], capture_output=True, text=True
        )
        assert result.stderr == ""
        return result.returncode, result.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_accepts_what_the_table_allows(tree: Tree) -> None:
    tree.write("src/penstock/base/clock.h", HEADER + "#include <cstdint>\n")
    tree.write(
        "src/penstock/engine/ops/take.cc",
        '#include "penstock/engine/ops/take.h"\n'
        "#include <vector>\n"
        '#include "absl/status/status.h"\n'
        '#include "penstock/base/clock.h"\n'
        '#include "penstock/io/file.h"\n'
        '#include "penstock/plan.pb.h"\n'
        '#include "penstock/plan/plan.h"\n',
    )
    tree.write(
        "src/penstock/service/store/memory_store.cc",
        '#include "penstock/service/store/memory_store.h"\n'
        '#include "penstock/base/clock.h"\n',
    )
    assert tree.check() == (0, [])


@pytest.mark.parametrize(
    ("room", "include"),
    [
        ("base", "penstock/data/column.h"),
        ("data", "penstock/io/file.h"),
        ("io", "penstock/data/column.h"),
        ("functions", "penstock/plan/plan.h"),
        ("plan", "penstock/io/file.h"),
        ("plan", "penstock/engine/operator.h"),
        ("tuner", "penstock/engine/operator.h"),
        ("engine", "penstock/tuner/choose.h"),
        ("engine", "penstock/session/session.h"),
        ("service/store", "penstock/engine/operator.h"),
        ("service/store", "penstock/service/dispatcher/jobs.h"),
        ("engine", "penstock/service/store/meta_store.h"),
        ("session", "penstock/main/flags.h"),
    ],
)
@pytest.mark.parametrize("quotes", ['""', "<>"])
def test_refuses_an_arrow_back(
    tree: Tree, room: str, include: str, quotes: str
) -> None:
    tree.write(
        f"src/penstock/{room}/x.cc",
        f"// Why.\n#include {quotes[0]}{include}{quotes[1]}\n",
    )
    status, lines = tree.check()
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(
        f"src/penstock/{room}/x.cc:2: expected {room} to include only {room}"
    )
    assert lines[0].endswith(f"; found {include}")


@pytest.mark.parametrize("room", ["base", "data", "io", "functions"])
def test_refuses_protos_below_plan(tree: Tree, room: str) -> None:
    tree.write(f"src/penstock/{room}/x.cc", '#include "penstock/plan.pb.h"\n')
    status, lines = tree.check()
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(
        f"src/penstock/{room}/x.cc:1: expected protos only in plan, tuner, "
    )
    assert lines[0].endswith(f"; found penstock/plan.pb.h in {room}")


@pytest.mark.parametrize("include", ["clock.h", "base/clock.h", "../base/c.h"])
def test_refuses_a_relative_include(tree: Tree, include: str) -> None:
    tree.write("src/penstock/base/x.cc", f'#include "{include}"\n')
    status, lines = tree.check()
    assert status == 1
    assert lines[0].startswith("src/penstock/base/x.cc:1: expected a path from")
    assert lines[0].endswith(f"found {include}")


def test_refuses_an_unknown_room(tree: Tree) -> None:
    tree.write("src/penstock/attic/x.cc")
    status, lines = tree.check()
    assert status == 1
    assert lines[0].endswith("found attic")


def test_refuses_a_source_outside_the_rooms(tree: Tree) -> None:
    tree.write("src/penstock/x.cc")
    assert tree.check() == (
        1,
        ["src/penstock/x.cc:1: expected to be in a room; found outside"],
    )


@pytest.mark.parametrize("name", ["take.cc", "take.h", "take_test.cc"])
def test_refuses_a_source_that_no_target_lists(tree: Tree, name: str) -> None:
    # A listed name that merely ends in this one does not count.
    tree.write(f"src/penstock/engine/mis{name}", HEADER)
    tree.write(f"src/penstock/engine/{name}", HEADER, listed=False)
    status, lines = tree.check()
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"src/penstock/engine/{name}:1: expected to be")


def test_accepts_a_source_listed_by_a_folder_above(tree: Tree) -> None:
    tree.write("src/penstock/engine/ops/take.cc", listed=False)
    tree.write("src/penstock/engine/CMakeLists.txt", "SRCS ops/take.cc\n")
    assert tree.check() == (0, [])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("src/penstock/base/utils.cc", "utils"),
        ("src/penstock/engine/common/take.cc", "common"),
        ("src/penstock/io/file_helpers.cc", "file_helpers"),
        ("python/penstock/core.py", "core"),
        ("tests/misc/test_take.py", "misc"),
    ],
)
def test_refuses_a_name_that_says_nothing(
    tree: Tree, path: str, found: str
) -> None:
    tree.write(path)
    assert tree.check() == (
        1,
        [f"{path}:1: expected a name that says what it holds; found {found}"],
    )


def test_refuses_a_file_over_800_lines(tree: Tree) -> None:
    tree.write("python/penstock/long.py", "x = 1\n" * 801)
    status, lines = tree.check()
    assert status == 1
    assert lines[0].startswith("python/penstock/long.py:801: expected at most")
    assert lines[0].endswith("found 801")


def test_warns_of_a_file_over_600_lines(tree: Tree) -> None:
    tree.write("src/penstock/base/long.cc", "\n" * 601)
    status, lines = tree.check()
    assert status == 0
    assert lines[0].startswith("src/penstock/base/long.cc:601: warning: ")


def test_refuses_a_header_without_pragma_once(tree: Tree) -> None:
    tree.write("src/penstock/base/x.h", "// #pragma once\n")
    assert tree.check() == (
        1,
        ["src/penstock/base/x.h:1: expected #pragma once; found none"],
    )
