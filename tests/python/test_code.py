"""Modules as workers get them, and functions by name."""

import functools
import io
import json
import os
import zipfile

import numpy as np
import pytest

import penstock as ps
from penstock import _code, _named
from penstock._packed import VALUES, Packed


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package `parcel_…` that can be imported."""
    name = f"parcel_{abs(hash(str(tmp_path))):x}"
    folder = tmp_path / name
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "work.py").write_text(
        "from os import system\n"
        "def double(x, by=2):\n    return x * by\n"
        "class Tool:\n    def use(self, x):\n        return x\n"
    )
    (folder / "inner" / "table.csv").write_text("1,2\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def work(package):
    import importlib

    return importlib.import_module(f"{package.name}.work")


class TestZip:
    def test_the_same_files_give_the_same_bytes(self, package):
        first = _code.make([package.name])
        (package / "__pycache__").mkdir(exist_ok=True)
        (package / "__pycache__" / "work.cpython-311.pyc").write_bytes(b"x")
        (package / ".hidden").write_text("x")
        os.utime(package / "work.py", (1, 1))
        assert _code.make([package]) == first
        assert _code.make([str(package), package.name]) == first
        (package / "work.py").write_text("")
        assert _code.make([package]).sha256 != first.sha256

    def test_it_has_modules_and_their_data(self, package):
        code = _code.make([package.name])
        names = zipfile.ZipFile(io.BytesIO(code.archive)).namelist()
        assert names == [
            f"{package.name}/__init__.py",
            f"{package.name}/inner/table.csv",
            f"{package.name}/work.py",
        ]
        assert code.contents[0].startswith(f"{package.name}: 3 files, ")
        assert code.has(f"{package.name}.work")
        assert not code.has(f"{package.name}_too")

    def test_a_single_module(self, package):
        (package.parent / "alone.py").write_text("x = 1\n")
        assert _code.make([package.parent / "alone.py"]).modules == ("alone",)

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ("json", "list of modules"),
            ([3], "names of modules"),
            (["json.decoder"], "as a whole"),
            (["no_such_module"], "cannot be found"),
            (["sys"], "is not"),
            (["__main__"], "module of its own"),
            (["./nowhere"], "folder"),
        ],
    )
    def test_what_is_no_module(self, given, why):
        with pytest.raises(ps.InvalidArgumentError, match=why):
            _code.make(given)

    def test_what_is_compiled_or_too_large(self, package, monkeypatch):
        (package / "fast.so").write_bytes(b"")
        with pytest.raises(ps.InvalidArgumentError, match=r"fast\.so"):
            _code.make([package])
        (package / "fast.so").unlink()
        monkeypatch.setattr(_code, "MAX_BYTES", 50)
        with pytest.raises(ps.InvalidArgumentError, match=r"work\.py \("):
            _code.make([package])

    def test_unpacking_trusts_nothing(self, package, tmp_path):
        _code.unpack(
            io.BytesIO(_code.make([package]).archive), str(tmp_path / "out")
        )
        assert (tmp_path / "out" / package.name / "work.py").exists()
        for name in ("../evil.py", "/evil.py", "a//b.py", "a/../../b.py"):
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w") as archive:
                archive.writestr(name, "x")
            with pytest.raises(ps.InvalidArgumentError, match="plain names"):
                _code.unpack(made, str(tmp_path / "out"))
        assert not (tmp_path / "evil.py").exists()


def packed(function):
    spec = ps.TensorSpec((), ps.int64)
    return Packed(function, "f", spec, spec, VALUES)


class TestNames:
    def test_a_function_comes_back(self, package):
        code = _code.make([package])
        function = functools.partial(work(package).double, by=np.int8(5))
        document = _named.write(packed(function), code)
        assert document == _named.write(packed(function), code)
        read = _named.read(document, code.has)
        assert read.function(3) == 15
        assert read.inputs == ps.TensorSpec((), ps.int64)

    @pytest.mark.parametrize(
        "value",
        [
            None,
            True,
            -1,
            2.5,
            "ä",
            b"\x00\xff",
            [1, (2, [3])],
            {1: {"a": (None,)}},
            np.float32(1.5),
            np.arange(6, dtype=np.int16).reshape(2, 3),
            np.zeros((0, 2)),
            np.array(3),
        ],
    )
    def test_plain_values_come_back(self, value):
        back = _named._from_json(json.loads(json.dumps(_named._to_json(value))))
        assert type(back) is type(value)
        np.testing.assert_equal(back, value)

    @pytest.mark.parametrize(
        ("place", "why"),
        [("work:Tool", "only functions"), ("work:Tool.use", "top level")],
    )
    def test_what_has_no_name(self, package, place, why):
        found = work(package)
        for part in place.partition(":")[2].split("."):
            found = getattr(found, part)
        with pytest.raises(_named.NoNameError, match=why):
            _named.write(packed(found), _code.make([package]))

    @pytest.mark.parametrize(
        "change",
        [
            {"module": "os", "function": "system"},
            {"module": "builtins", "function": "eval"},
            {"function": "system"},
            {"function": "Tool"},
            {"function": "Tool.use"},
            {"function": "os.system"},
            {"inputs": {"named": {"type_name": "subprocess:Popen"}}},
            {"inputs": {"named": {"type_name": "MODULE:Tool"}}},
            {"inputs": {"named": {"type_name": "MODULE:system"}}},
        ],
        ids=str,
    )
    def test_only_what_came_along_is_called(self, package, change):
        code = _code.make([package])
        document = _named.write(packed(work(package).double), code)
        body = json.loads(document[len(_named.MAGIC) :])
        text = json.dumps({**body, **change})
        text = text.replace("MODULE", f"{package.name}.work")
        with pytest.raises(PermissionError):
            _named.read(_named.MAGIC + text.encode(), code.has)
