"""The wheel installs into an empty environment and works there."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "build/release/src/penstock/main/penstock"

pytestmark = pytest.mark.skipif(
    not BINARY.exists(), reason="the release binary is not built"
)


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command without what this environment would lend it."""
    lent = ("PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    result = subprocess.run(
        command,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k not in lent},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def make_wheel(out: Path) -> Path:
    tool = ROOT / "tools/make_wheel.py"
    return Path(run(sys.executable, tool, "--out", out, cwd=out).strip())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that holds the wheel alone."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=True)
    run(environment / "bin/pip", "install", wheel, cwd=environment)
    return environment / "bin"


def test_one_wheel_serves_every_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "penstock/__init__.py" in names
        assert "penstock/py.typed" in names
        assert archive.getinfo("penstock/bin/penstock").external_attr >> 16 == (
            0o100755
        )
        # Nothing in it is tied to one interpreter, or left from a test run.
        assert not [n for n in names if "cpython" in n or "__pycache__" in n]


def test_same_tree_gives_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert make_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_every_library_is_beside_the_binary(installed: Path) -> None:
    (package,) = installed.parent.glob("lib/python3*/site-packages/penstock")
    system = ("linux-vdso", "libc.", "libm.", "libpthread.", "libdl.", "librt.")
    for line in run("ldd", package / "bin/penstock", cwd=package).splitlines():
        name, _, found = line.strip().partition(" => ")
        if found and not name.startswith(system):
            assert found.startswith(f"{package}/bin/"), line


def test_installs_with_numpy_and_cloudpickle_alone(installed: Path) -> None:
    listing = run(
        installed / "pip", "list", "--format=freeze", cwd=installed
    ).splitlines()
    names = {line.split("==")[0].lower() for line in listing}
    assert names - {"pip", "setuptools", "wheel"} == {
        "cloudpickle",
        "numpy",
        "penstock",
    }


def test_runs_a_pipeline_from_anywhere(installed: Path, tmp_path: Path) -> None:
    program = (
        "import penstock as ps\nprint([int(x) for x in ps.Dataset.range(3)])\n"
    )
    said = run(installed / "python", "-c", program, cwd=tmp_path)
    assert said.strip() == "[0, 1, 2]"


def test_versions_agree(wheel: Path, installed: Path, tmp_path: Path) -> None:
    version = wheel.name.split("-")[1]
    said = run(installed / "penstock", "--version", cwd=tmp_path)
    assert version in said.split()
    program = "import penstock; print(penstock.__version__)"
    said = run(installed / "python", "-c", program, cwd=tmp_path)
    assert said.strip() == version
