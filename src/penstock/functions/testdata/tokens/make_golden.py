"""Trains small tokenizers and writes what their reference packages give.

    python -m venv /tmp/v && /tmp/v/bin/pip install tokenizers sentencepiece
    /tmp/v/bin/python src/penstock/functions/testdata/tokens/make_golden.py

Beside this script: gpt2_vocab.json, gpt2_merges.txt, bert_vocab.txt, the
SentencePiece models, and golden.json with texts and their numbers.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).parent

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "I can't believe it's not what they've said; we'll see, I'm sure he'd go.",
    "Playing, played, plays: unbelievable players re-play replays.",
    "In 2024, 1,234.56 was about 12% of 9876543210.",
    "Straße, Ärger, Öl und Übermut; naïve café résumé coöperate.",
    "Привет, мир! Как дела?",
    "日本語のテキストと漢字。中文字符。",
    "한국어 문장입니다.",
    "مرحبا بالعالم",
    "def f(x):\n    return x ** 2  # comment\n\n\tif True: pass",
    "emoji 😀👍🏽 and ﬁgures ½ ① Ａ！",
]
EXTRA = [
    "",
    " ",
    "   ",
    "\n\n  \n x",
    "a  b   c    ",
    "  leading and trailing  ",
    "'s 't 're ''ll 'S don''t",
    "x" * 150,
    "ab" * 200,
    "tab\tand\u00a0nbsp\u2003em\u3000wide",
    "zero\u200bwidth\u200djoin\ufeffbom\u00adsoft",
    "İstanbul ΣΑΣ ǅ ǆ ẞ",
    "e\u0301 combined é \u0327",
    "\u0000nul\u0001ctrl\u007fdel\u0085nel",
    "１２３ ²³ Ⅷ ५६",
    "a.b,c!d?e-f_g/h\\i(j)[k]{l}",
    "¿qué? «quoted» „low“ …—–",
    "▁already ▁▁ marked",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family",
    "The " * 40,
    "unbelievableplayersreplaybrownquick",
]
RULES = [("ﬁ", "fi"), ("Ａ", "A"), ("！", "!"), ("①", "1"), ("½", "1/2"),
         ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\n", " "),
         ("e\u0301", "é"), ("\u200b", ""), ("\u00ad", "")]  # fmt: skip


def texts() -> list[str]:
    draw = random.Random(4)
    words = [word for line in SENTENCES for word in line.split(" ")]
    mixed = [
        " ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(60)
    ]
    letters = "".join(SENTENCES) + "'  \n"
    noise = [
        "".join(draw.choices(letters, k=draw.randint(1, 40))) for _ in range(60)
    ]
    return [*SENTENCES, *EXTRA, *mixed, *noise]


def corpus() -> list[str]:
    draw = random.Random(5)
    words = [word for line in SENTENCES for word in line.split()]
    lines = [" ".join(draw.choices(words, k=10)) for _ in range(300)]
    return SENTENCES * 5 + lines


def gpt2() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab, merges = HERE / "gpt2_vocab.json", HERE / "gpt2_merges.txt"
    vocab.write_text(json.dumps(model["vocab"], ensure_ascii=False))
    lines = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    merges.write_text("\n".join(["#version: 0.2", *lines]) + "\n")
    plain = [tokenizer.encode(text).ids for text in texts()]
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return {
        "plain": plain,
        "add_prefix_space": [tokenizer.encode(text).ids for text in texts()],
    }


def bert() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]"], show_progress=False
    )
    # Without the last, so that some characters are unknown.
    tokenizer.train_from_iterator(corpus()[:-1], trainer)
    vocab = tokenizer.get_vocab()
    words = sorted(vocab, key=lambda word: vocab[word])
    (HERE / "bert_vocab.txt").write_text("\n".join(words) + "\n")
    forms = {
        "uncased": {"lowercase": True},
        "cased": {"lowercase": False},
        "accents": {"lowercase": True, "strip_accents": False},
        "no_chinese": {"lowercase": True, "handle_chinese_chars": False},
    }
    found = {}
    for name, options in forms.items():
        tokenizer.normalizer = normalizers.BertNormalizer(**options)
        found[name] = {
            "options": options,
            "numbers": [tokenizer.encode(text).ids for text in texts()],
        }
    return found


def pieces() -> Any:
    os.chdir(HERE)  # models keep the paths they were trained with
    rules = Path("rules.tsv")

    def codes(text: str) -> str:
        return " ".join(f"{ord(c):X}" for c in text)

    rules.write_text("".join(f"{codes(a)}\t{codes(b)}\n" for a, b in RULES))
    found = {}
    for name, options in {
        "unigram": {"model_type": "unigram", "byte_fallback": False},
        "unigram_bytes": {
            "model_type": "unigram",
            "byte_fallback": True,
            "vocab_size": 440,
            "remove_extra_whitespaces": False,
            "user_defined_symbols": ["<sep>", "def"],
        },
        "bpe": {"model_type": "bpe", "byte_fallback": False},
        "bpe_bytes": {
            "model_type": "bpe",
            "byte_fallback": True,
            "vocab_size": 440,
            "add_dummy_prefix": False,
            "user_defined_symbols": ["<sep>"],
        },
        "word": {"model_type": "word", "vocab_size": 40},
        "word_bytes": {
            "model_type": "word",
            "byte_fallback": True,
            "vocab_size": 300,
            "add_dummy_prefix": False,
            "remove_extra_whitespaces": False,
            "user_defined_symbols": ["<sep>", "def"],
        },
        "word_suffix": {
            "model_type": "word",
            "vocab_size": 40,
            "treat_whitespace_as_suffix": True,
        },
        "char": {"model_type": "char", "vocab_size": 60},
        "char_bytes": {
            "model_type": "char",
            "byte_fallback": True,
            "vocab_size": 330,
            "remove_extra_whitespaces": False,
            "user_defined_symbols": ["<sep>", "def", "de"],
        },
    }.items():
        settings = {"vocab_size": 160, **options}
        settings["hard_vocab_limit"] = options["model_type"] == "bpe"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(
                line.replace("\n", " ") for line in corpus()
            ),
            model_prefix=f"sp_{name}",
            normalization_rule_tsv=str(rules),
            character_coverage=0.98,
            minloglevel=2,
            **settings,
        )
        Path(f"sp_{name}.vocab").unlink()
        processor = sentencepiece.SentencePieceProcessor(
            model_file=f"sp_{name}.model"
        )
        numbers = processor.encode(sp_texts())
        found[name] = {
            "numbers": numbers,
            "decoded": [processor.decode(row) for row in numbers],
        }
    rules.unlink()
    return found


def sp_texts() -> list[str]:
    names = "<s> </s> <unk> <0x41> <s>x def"  # words that pieces have
    return [*texts(), "<sep>a<sep><sep> b def", "define <sep", names, "<s>"]


def main() -> None:
    golden = {
        "texts": sp_texts(),
        "gpt2": gpt2(),
        "bert": bert(),
        "sentencepiece": pieces(),
    }
    (HERE / "golden.json").write_text(json.dumps(golden))


if __name__ == "__main__":
    main()
