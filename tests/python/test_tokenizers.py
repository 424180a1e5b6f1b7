"""Tokenizers against what their reference packages give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

MODELS = Path(__file__).parents[2] / "src/penstock/functions/testdata/tokens"
GOLDEN = json.loads((MODELS / "golden.json").read_text())
TEXTS = GOLDEN["texts"]


def encoded(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """By a pipeline, one text an element."""
    ds = ps.Dataset.from_tensor_slices([text.encode() for text in texts])
    return [row.tolist() for row in ds.map(tokenizer.encode)]


def assert_same(got: list[list[int]], want: list[list[int]]) -> None:
    assert len(got) == len(want)
    wrong = [
        (text, g, w)
        for text, g, w in zip(TEXTS, got, want, strict=False)
        if g != w
    ]
    assert not wrong, f"{len(wrong)} of {len(want)}: {wrong[:5]}"


def gpt2(**options: Any) -> ps.text.ByteLevelBPE:
    return ps.text.ByteLevelBPE(
        MODELS / "gpt2_vocab.json", MODELS / "gpt2_merges.txt", **options
    )


def test_bpe_gives_what_tokenizers_gives() -> None:
    want = GOLDEN["gpt2"]["plain"]
    assert_same(encoded(gpt2(), TEXTS[: len(want)]), want)


def test_bpe_with_prefix_space() -> None:
    want = GOLDEN["gpt2"]["add_prefix_space"]
    got = encoded(gpt2(add_prefix_space=True), TEXTS[: len(want)])
    assert_same(got, want)


def test_bpe_decodes_to_the_same_text() -> None:
    tokenizer = gpt2()
    for data in [*(text.encode() for text in TEXTS[:60]), b"\xff\x00\xc3"]:
        assert tokenizer.decode(tokenizer.encode(data)) == data


def test_bpe_of_a_long_word_ends() -> None:
    tokenizer = gpt2()
    text = b"unbelievable" * 20_000
    (numbers,) = ps.Dataset.from_tensors(text).map(tokenizer.encode)
    assert tokenizer.decode(numbers[:1000]) == text[: len(b"".join(
        tokenizer._pieces.lookup(numbers[:1000])
    ))]  # fmt: skip


@pytest.mark.parametrize("form", sorted(GOLDEN["bert"]))
def test_wordpiece_gives_what_tokenizers_gives(form: str) -> None:
    golden = GOLDEN["bert"][form]
    tokenizer = ps.text.WordPiece(
        MODELS / "bert_vocab.txt", **golden["options"]
    )
    want = golden["numbers"]
    assert_same(encoded(tokenizer, TEXTS[: len(want)]), want)


def test_a_vector_of_texts_is_ragged() -> None:
    tokenizer = gpt2()
    texts = [text.encode() for text in TEXTS[:5]]
    ragged = tokenizer.encode(texts)
    assert isinstance(ragged, ps.Ragged)
    np.testing.assert_array_equal(
        ragged.values, np.concatenate([tokenizer.encode(t) for t in texts])
    )
    assert ragged.row_splits[-1] == len(ragged.values)


def test_wrong_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ps.NotFoundError, match="must exist"):
        ps.text.WordPiece(tmp_path / "none.txt")
    (tmp_path / "vocab.json").write_text("[1]")
    with pytest.raises(ps.InvalidArgumentError, match="object of numbers"):
        ps.text.ByteLevelBPE(tmp_path / "vocab.json", [])
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(ps.InvalidArgumentError, match="must be JSON"):
        ps.text.ByteLevelBPE(tmp_path / "vocab.json", [])
    with pytest.raises(ps.InvalidArgumentError, match="two pieces"):
        ps.text.ByteLevelBPE({"a": 0, "b": 1}, ["a b"])
    with pytest.raises(ps.InvalidArgumentError, match="unknown words"):
        ps.text.WordPiece(["a"])
    with pytest.raises(ps.InvalidArgumentError, match="must differ"):
        ps.text.WordPiece(["[UNK]", "a", "a"])


@pytest.mark.parametrize("name", sorted(GOLDEN["sentencepiece"]))
def test_sentencepiece_gives_what_sentencepiece_gives(name: str) -> None:
    golden = GOLDEN["sentencepiece"][name]
    tokenizer = ps.text.SentencePiece(MODELS / f"sp_{name}.model")
    assert_same(encoded(tokenizer, TEXTS), golden["numbers"])


@pytest.mark.parametrize("name", sorted(GOLDEN["sentencepiece"]))
def test_sentencepiece_decodes(name: str) -> None:
    golden = GOLDEN["sentencepiece"][name]
    tokenizer = ps.text.SentencePiece(MODELS / f"sp_{name}.model")
    wrong = []
    for numbers, text in zip(golden["numbers"], golden["decoded"], strict=True):
        got = tokenizer.decode(np.array(numbers, np.int32)).decode()
        if got != text:
            wrong.append((numbers, got, text))
    assert not wrong, f"{len(wrong)}: {wrong[:5]}"


def test_bytes_that_are_no_model_are_refused() -> None:
    data = (MODELS / "sp_bpe.model").read_bytes()
    for bad in (b"", b"\xff" * 20, data[:100], b"{}", bytes(100)):
        with pytest.raises(ps.InvalidArgumentError, match="SentencePiece"):
            ps.text.SentencePiece(bad)


def test_damaged_models_do_no_harm() -> None:
    """Any answer or error will do, but one comes."""
    data = (MODELS / "sp_unigram.model").read_bytes()
    random = np.random.default_rng(1)
    for _ in range(60):
        bad = bytearray(data)
        for at in random.integers(0, len(bad), 4):
            bad[at] = random.integers(256)
        try:
            tokenizer = ps.text.SentencePiece(bytes(bad))
            tokenizer.encode("The quick ﬁgure ½ brown\u00a0fox")
        except ps.PenstockError:
            pass
    assert ps.strings.lower("ALIVE") == b"alive"
