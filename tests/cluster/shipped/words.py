"""What `prep` needs besides itself."""

from pathlib import Path

WORDS = (Path(__file__).parent / "words.txt").read_bytes().split()


def word(number):
    return WORDS[number % len(WORDS)]
