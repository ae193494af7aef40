"""The files that state what to install agree with each other and with what is installed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from rederive_book import environment

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
TORCH = (ROOT / "requirements-torch.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def _locked() -> dict[str, list[Requirement]]:
    """Package name to its pins; a package may have one for each range of Pythons."""
    found: dict[str, list[Requirement]] = {}
    for line in LOCK.splitlines():
        if line and not line.startswith((" ", "#")):
            pin = Requirement(line.rstrip(" \\"))
            found.setdefault(_name(pin.name), []).append(pin)
    return found


def _wanted() -> list[Requirement]:
    project = PROJECT["project"]
    texts = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    return [Requirement(text) for text in texts]


def test_every_dependency_but_torch_is_locked_within_its_range():
    locked = _locked()
    for wanted in _wanted():
        if wanted.name == "torch":
            continue
        for pin in locked[_name(wanted.name)]:
            (specifier,) = pin.specifier
            assert specifier.operator == "=="
            assert wanted.specifier.contains(specifier.version, prereleases=True), pin


def test_every_locked_package_has_hashes_and_no_local_version():
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) > 100
    for entry in entries:
        assert "--hash=sha256:" in entry, entry
        assert "+" not in entry.splitlines()[0], entry
    assert "://" not in LOCK


def test_torch_is_one_pin_without_hash_or_local_version():
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+\n", TORCH)
    assert "torch" not in _locked()


def test_the_lock_holds_what_the_installed_torch_needs():
    assert version("torch").split("+")[0] == TORCH.strip().removeprefix("torch==")
    locked = _locked()
    for text in requires("torch"):
        wanted = Requirement(text)
        if wanted.name.startswith(("nvidia", "cuda", "triton")):
            continue  # only some builds bring them along
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue  # an extra, or another Python
        for pin in locked[_name(wanted.name)]:
            (specifier,) = pin.specifier
            assert wanted.specifier.contains(specifier.version), pin


def test_the_installed_packages_are_the_locked_ones():
    for name, pins in _locked().items():
        for pin in pins:
            if pin.marker is None or pin.marker.evaluate():
                assert pin.specifier.contains(version(name), prereleases=True), pin


def test_conda_states_python_and_points_to_the_same_files():
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    conda = yaml.safe_load(text)
    pythons = [d for d in conda["dependencies"] if isinstance(d, str) and d.startswith("python")]
    assert len(pythons) == 1
    assert re.search(r"3\.\d+", pythons[0])
    assert "requirements.lock" in text
    assert "requirements-torch.txt" in text
    numbers = re.findall(r"==\s*[\d.]+", text)
    assert numbers == [], "a version stands in environment.yml and in another file"


def test_the_minimum_python_is_the_same_everywhere():
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert "sys.version_info < (3, 11)" in Path(environment.__file__).read_text(encoding="utf-8")


def test_a_change_of_any_input_asks_for_a_new_set_up(tmp_path):
    for name in environment.INPUTS:
        (tmp_path / name).write_text(name, encoding="utf-8")
    before = environment.digest(tmp_path)
    assert environment.digest(tmp_path) == before
    for name in environment.INPUTS:
        (tmp_path / name).write_text("changed", encoding="utf-8")
        after = environment.digest(tmp_path)
        assert after != before
        before = after


def test_a_checkout_in_another_place_asks_for_a_new_set_up(tmp_path):
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        for name in environment.INPUTS:
            (tmp_path / place / name).write_text(name, encoding="utf-8")
    assert environment.digest(tmp_path / "here") != environment.digest(tmp_path / "there")


def test_an_environment_left_without_pip_gets_it_back(tmp_path, monkeypatch):
    for name in environment.INPUTS:
        (tmp_path / name).write_text(name, encoding="utf-8")
    environment.venv.create(tmp_path / ".venv", with_pip=False)
    ran = []

    def run(command, check=False, capture_output=False):
        ran.append(command[1:])
        return environment.subprocess.CompletedProcess(command, 0 if check else 1)

    monkeypatch.setattr(environment.subprocess, "run", run)
    assert environment.set_up(tmp_path)
    assert ran[:2] == [["-m", "pip", "--version"], ["-m", "ensurepip"]]
    assert len(ran) == 5


def test_set_up_installs_the_lock_with_hashes_before_torch(tmp_path):
    lock, torch, book = environment.commands(tmp_path)
    # the lock is complete but for torch: what asks for torch must not bring it in without a hash
    assert {"--require-hashes", "--no-deps"} <= set(lock) and lock[-1].endswith("requirements.lock")
    assert "--require-hashes" not in torch and torch[-1].endswith("requirements-torch.txt")
    assert "--editable" in book and "--no-deps" in book


def test_set_up_does_nothing_when_nothing_changed(tmp_path, monkeypatch):
    for name in environment.INPUTS:
        (tmp_path / name).write_text(name, encoding="utf-8")
    ran = []
    monkeypatch.setattr(environment.venv, "create", lambda *a, **k: (tmp_path / ".venv").mkdir())
    monkeypatch.setattr(environment.subprocess, "run", lambda command, check: ran.append(command))
    assert environment.set_up(tmp_path)
    assert len(ran) == 3
    assert not environment.set_up(tmp_path)
    assert len(ran) == 3


def test_a_failed_install_leaves_no_stamp(tmp_path, monkeypatch):
    for name in environment.INPUTS:
        (tmp_path / name).write_text(name, encoding="utf-8")

    def fail(command, check):
        raise environment.subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(environment.venv, "create", lambda *a, **k: (tmp_path / ".venv").mkdir())
    monkeypatch.setattr(environment.subprocess, "run", fail)
    with pytest.raises(environment.subprocess.CalledProcessError):
        environment.set_up(tmp_path)
    assert not (tmp_path / ".venv" / "rederive-inputs").exists()
