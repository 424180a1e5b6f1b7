#!/usr/bin/env python3
"""Packs python/penstock and the built binary into a wheel.

    tools/make_wheel.py             writes dist/penstock-VERSION-TAG.whl
    tools/make_wheel.py --develop   puts this tree into the running interpreter

No extension module is compiled, so one wheel serves every Python. The binary
lies in penstock/bin, stripped, with the shared libraries that a bare system
does not have beside it. The same tree gives the same bytes.

The version is the one of project() in CMakeLists.txt, and nothing else states
it: it goes into the metadata, where `importlib.metadata.version("penstock")`
finds it in both forms of installation.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/release/src/penstock/main/penstock"
TAG = "py3-none-linux_x86_64"

# Part of every glibc system. All else that the binary loads is bundled.
SYSTEM_LIBRARIES = {
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
}

# Debian packages whose code the binary contains or carries along.
LICENSED = (
    "libabsl-dev",
    "libfarmhash-dev",
    "libhwy-dev",
    "libicu-dev",
    "libisal-dev",
    "libprotobuf-dev",
    "libre2-dev",
    "libsimdjson-dev",
    "libsqlite3-dev",
    "libzstd-dev",
    "zlib1g-dev",
)


class WheelError(Exception):
    """Something that the wheel needs is not there."""


def read_version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(\s*penstock\s+VERSION\s+([0-9.]+)", text)
    if not found:
        raise WheelError("CMakeLists.txt: expected project(penstock VERSION …)")
    return found[1]


def read_project() -> dict:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return tomllib.load(file)["project"]


def metadata(version: str) -> str:
    project = read_project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {name}" for name in project["dependencies"]),
    ]
    readme = ROOT / project["readme"]
    if readme.exists():
        lines += ["Description-Content-Type: text/markdown", ""]
        lines += [readme.read_text().rstrip()]
    return "\n".join(lines) + "\n"


def entry_points() -> str:
    scripts = read_project()["scripts"]
    rows = [f"{name} = {target}" for name, target in scripts.items()]
    return "\n".join(["[console_scripts]", *rows]) + "\n"


def run(*command: str | Path) -> str:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise WheelError(
            f"{Path(command[0]).name} failed with {result.returncode}: "
            f"{result.stderr.strip()}"
        )
    return result.stdout


def libraries_to_bundle(binary: Path) -> list[Path]:
    """The shared libraries that `binary` loads and a bare system lacks."""
    libraries = []
    for line in run("ldd", binary).splitlines():
        if "not found" in line:
            raise WheelError(f"{binary}: {line.strip()}")
        found = re.match(r"\s*(\S+) => (/\S+)", line)
        if found and found[1] not in SYSTEM_LIBRARIES:
            libraries.append(Path(found[2]))
    return sorted(libraries)


def pack_binary(into: Path) -> list[Path]:
    """Copies the binary and its libraries; returns the copies."""
    if not BINARY.exists():
        raise WheelError(
            f"{BINARY.relative_to(ROOT)} is not built; run `make wheel`"
        )
    libraries = libraries_to_bundle(BINARY)
    copies = []
    for source in [BINARY, *libraries]:
        copy = into / source.name
        shutil.copy(source, copy)  # follows links: libx.so.2 becomes a file
        copy.chmod(0o755)
        run("strip", "--strip-unneeded", copy)
        if libraries:
            # Each looks for the others in its own folder.
            run(find_patchelf(), "--set-rpath", "$ORIGIN", copy)
        copies.append(copy)
    return copies


def find_patchelf() -> str:
    beside = Path(sys.executable).parent / "patchelf"
    found = str(beside) if beside.exists() else shutil.which("patchelf")
    if not found:
        raise WheelError("patchelf is not installed; run tools/setup")
    return found


def licenses() -> dict[str, bytes]:
    """The licences of this project and of what its binary contains."""
    texts = {"LICENSE": (ROOT / "LICENSE").read_bytes()}
    for package in LICENSED:
        text = Path("/usr/share/doc") / package / "copyright"
        texts[f"{package}.copyright"] = text.read_bytes()
    return texts


def package_sources() -> dict[str, bytes]:
    package = ROOT / "python/penstock"
    return {
        str(Path("penstock") / file.relative_to(package)): file.read_bytes()
        for file in sorted(package.rglob("*"))
        if file.suffix in {".py", ".pyi"} or file.name == "py.typed"
    }


def record_row(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return f"{name},sha256={digest.rstrip(b'=').decode()},{len(content)}\n"


def make_wheel(out: Path) -> Path:
    version = read_version()
    info = f"penstock-{version}.dist-info"
    files = package_sources()
    with tempfile.TemporaryDirectory() as scratch:
        for copy in pack_binary(Path(scratch)):
            files[f"penstock/bin/{copy.name}"] = copy.read_bytes()
    for name, text in licenses().items():
        files[f"{info}/licenses/{name}"] = text
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/entry_points.txt"] = entry_points().encode()
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: penstock make_wheel\n"
        f"Root-Is-Purelib: false\nTag: {TAG}\n"
    ).encode()
    rows = [record_row(name, content) for name, content in files.items()]
    record = f"{info}/RECORD"
    files[record] = "".join([*rows, f"{record},,\n"]).encode()

    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"penstock-{version}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # dated 1980: no clock in the bytes
            mode = 0o755 if name.startswith("penstock/bin/") else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def develop() -> None:
    """Makes this interpreter import the package from the source tree.

    The command beside the interpreter runs the release build.
    """
    site = Path(sysconfig.get_path("purelib"))
    for old in site.glob("penstock-*.dist-info"):
        shutil.rmtree(old)
    version = read_version()
    info = site / f"penstock-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata(version))
    (info / "INSTALLER").write_text("tools/setup\n")
    (site / "penstock.pth").write_text(f"{ROOT / 'python'}\n")
    command = Path(sysconfig.get_path("scripts")) / "penstock"
    command.unlink(missing_ok=True)
    command.write_text(
        f"#!/bin/sh\nPENSTOCK_PYTHON='{sys.executable}' "
        f"exec '{BINARY}' \"$@\"\n"
    )
    command.chmod(0o755)


def build_wheel(
    wheel_directory: str,
    config_settings: object = None,
    metadata_directory: str | None = None,
) -> str:
    """What pip calls for `pip install .`; the binary must be built."""
    return make_wheel(Path(wheel_directory)).name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--develop", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    try:
        if arguments.develop:
            develop()
        else:
            print(make_wheel(arguments.out))
    except WheelError as error:
        print(f"make_wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
