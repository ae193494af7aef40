"""Loading of the trained model and of its texts: what is there, and what is refused."""

import hashlib
import importlib.util
import re
import sys

import numpy as np
import pytest

from rederive_book import models

for package in (models.PACKAGE, "safetensors", "tokenizers"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def model():
    return models.load_minilm()


def test_the_model_has_the_sizes_it_says(model):
    assert len(model.tensors) == 104
    layers, heads, dim = (
        model.config[name] for name in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    assert (layers, heads, dim) == (6, 12, 384)
    table = model.tensors["embeddings.word_embeddings.weight"]
    assert tuple(table.shape) == (model.config["vocab_size"], dim)
    assert model.tokenizer.get_vocab_size() == model.config["vocab_size"]
    weights = sum(tensor.numel() for tensor in model.tensors.values() if tensor.is_floating_point())
    assert weights == 22_713_216


def test_a_changed_byte_is_noticed(tmp_path):
    for name in models.SHA256:
        (tmp_path / name).write_bytes((models.model_folder() / name).read_bytes())
    assert models.load_minilm(tmp_path).config["model_type"] == "bert"
    for name, wanted in models.SHA256.items():
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ValueError, match=rf"{name}: damaged.*{wanted}.*reinstall"):
            models.load_minilm(tmp_path)
        assert re.search(rf"{name} .*not the expected one.*reinstall", damage_of(tmp_path))
        (tmp_path / name).write_bytes(content)
    assert damage_of(tmp_path) is None and models.damage() is None


def damage_of(folder):
    models.damage.cache_clear()
    return models.damage(folder)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"model\.safetensors: cannot be read.*reinstall"):
        models.load_minilm(tmp_path)
    assert damage_of(tmp_path).startswith("the file model.safetensors of the trained model cannot")


def test_verified_returns_the_bytes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert models.verified(path, hashlib.sha256(b"abc").hexdigest()) == b"abc"


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"not installed.*\[models\]"):
        models.load_minilm()


@pytest.mark.parametrize("package", ["safetensors.torch", "tokenizers"])
def test_a_missing_reader_says_what_to_install(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}.*not installed.*\[models\]"):
        models.load_minilm()


@pytest.mark.parametrize("topic", models.TOPICS)
def test_docstrings_are_many_and_different(topic):
    texts = models.docstrings(topic)
    assert len(texts) >= 150
    assert len(set(texts.values())) == len(texts) and list(texts) == sorted(texts)
    assert texts == models.docstrings(topic)


def test_topics_share_no_text():
    first, second = (set(models.docstrings(topic).values()) for topic in models.TOPICS)
    assert not first & second


def test_unknown_topics_are_refused():
    with pytest.raises(ValueError, match="topic must be one of statistics, signals"):
        models.docstrings("cooking")


def test_texts_are_cut_to_one_length(model):
    numbers, kept = models.token_numbers(model.tokenizer, ["a b c d", "a b", "e f g"], 5)
    vocabulary = model.tokenizer.get_vocab()
    marks = vocabulary["[CLS]"], vocabulary["[SEP]"]
    assert kept == [0, 2] and numbers.shape == (2, 5)
    assert numbers[:, 0].tolist() == [marks[0]] * 2 and numbers[:, -1].tolist() == [marks[1]] * 2
    assert numbers[0, 1:-1].tolist() == [vocabulary[letter] for letter in "abc"]
    plain, _ = models.token_numbers(model.tokenizer, ["a b c d"], 4, special=False)
    assert plain[0].tolist() == [vocabulary[letter] for letter in "abcd"]


@pytest.mark.parametrize("topic", models.TOPICS)
def test_the_first_pieces_are_those_of_the_whole_text(model, topic):
    for text in (*models.docstrings(topic).values(), "a" * 500 + " b c d", "e  \n\t f g "):
        whole = model.tokenizer.encode(text, add_special_tokens=False).ids
        for length in (3, 32):
            cut = [whole[:length]] if len(whole) >= length else []
            filler = "a b c d " * 8  # so that there is one text at least
            found, kept = models.token_numbers(
                model.tokenizer, [text, filler], length, special=False
            )
            assert found[:-1].tolist() == cut and kept[-1] == 1


@pytest.mark.parametrize(
    ("length", "words"), [(2, "length"), (True, "length"), (40, "at least 38")]
)
def test_lengths_that_do_not_fit_are_refused(model, length, words):
    with pytest.raises(ValueError, match=words):
        models.token_numbers(model.tokenizer, ["a b c"], length)


def test_drawn_texts_take_turns_and_do_not_repeat(model):
    first, again, other = (
        models.draw_texts(model.tokenizer, 16, 20, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    assert first.shape == (40, 16) and np.array_equal(first, again)
    assert not np.array_equal(first, other)
    for start, topic in enumerate(models.TOPICS):
        every, _ = models.token_numbers(model.tokenizer, models.docstrings(topic).values(), 16)
        pool = {tuple(row) for row in every.tolist()}
        assert {tuple(row) for row in first[start::2].tolist()} <= pool
    with pytest.raises(ValueError, match="count must be at most"):
        models.draw_texts(model.tokenizer, 16, 10**6, np.random.default_rng(0))
