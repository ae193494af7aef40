"""The variables of a build are checked before anything runs."""

import pytest
import torch

from rederive_book import options

PAGES = ("regression/a", "regression/b")


def test_defaults_are_quick_and_the_books_seed():
    chosen = options.read({"device": "cpu"}, PAGES)
    assert chosen.parameters == {"profile": "quick", "seed": options.DEFAULT_SEED, "device": "cpu"}
    assert chosen.page is None
    assert chosen.untried == ()


def test_options_survive_the_environment(monkeypatch):
    chosen = options.read(
        {"profile": "full", "device": "cpu", "seed": "3", "jobs": "4", "page": "regression/b"}
        | {"untried": "regression.x, regression/a", "site": "0", "cell_timeout": "9"},
        PAGES,
    )
    for name, value in chosen.as_environment().items():
        monkeypatch.setenv(name, value)
    assert options.read_environment(PAGES) == chosen
    assert chosen.untried == ("regression.x", "regression/a")


@pytest.mark.parametrize(
    "name", ["regression/a", "chapters/regression/a.md", "./chapters/regression/a.md"]
)
def test_a_page_may_be_named_by_its_file(name):
    assert options.read({"page": name, "device": "cpu"}, PAGES).page == "regression/a"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"profile": "slow"}, ("profile", "quick, full", "'slow'")),
        ({"device": "gpu"}, ("device", "auto, cpu, cuda", "'gpu'")),
        ({"seed": "1.5"}, ("seed", "whole number", "'1.5'")),
        ({"seed": "-2"}, ("seed", "at least 0", "-2")),
        ({"jobs": "0"}, ("jobs", "at least 1", "0")),
        ({"page": "regression/c"}, ("page", "regression/a, regression/b", "'regression/c'")),
        ({"site": "maybe"}, ("site", "0, 1", "'maybe'")),
        ({"colour": "red"}, ("colour", "unknown variable", "profile")),
    ],
)
def test_bad_values_are_named_with_what_is_allowed(values, words):
    with pytest.raises(ValueError) as error:
        options.read({"device": "cpu"} | values, PAGES)
    for word in words:
        assert word in str(error.value)


def test_cuda_without_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(options, "_torch_may_see_a_gpu", lambda: False)
    assert options.read({"device": "auto"}, PAGES).device == "cpu"
    with pytest.raises(ValueError, match="device: expected cpu or auto"):
        options.read({"device": "cuda"}, PAGES)


def test_a_torch_built_for_a_gpu_is_asked_whether_it_sees_one(monkeypatch):
    monkeypatch.setattr(options, "_torch_may_see_a_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert options.read({}, PAGES).device == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch sees no CUDA device"):
        options.read({"device": "cuda"}, PAGES)
