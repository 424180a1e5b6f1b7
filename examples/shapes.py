"""The data of the training examples: small photographs of shapes, as JPEG.

Four kinds of shapes at random places, in tar files as WebDataset writes them,
and the pipeline that reads them: shuffle, decode, augment, batch.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import penstock as ps

KINDS = ("disc", "square", "ring", "cross")
SIZE = 32  # pixels of a picture's side
FILES = 4
PICTURES_PER_FILE = 160


def draw(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A picture of one shape, on noise."""
    y, x = np.mgrid[:SIZE, :SIZE] - rng.uniform(12, 20, (2, 1, 1))
    radius = rng.uniform(6, 10)
    distance = np.hypot(x, y)
    inside = (
        distance < radius,
        np.maximum(abs(x), abs(y)) < radius * 0.8,
        abs(distance - radius) < 2,
        (np.minimum(abs(x), abs(y)) < 2) & (distance < radius),
    )[kind]
    picture = rng.normal(90, 25, (SIZE, SIZE, 3))
    picture[inside] += rng.uniform(60, 130, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


def make_files(folder: Path) -> None:
    """Writes the tar files, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in range(FILES):
        path = folder / f"shapes-{file}.tar"
        if path.exists():
            continue
        rng = np.random.default_rng(file)
        kinds = rng.integers(0, len(KINDS), PICTURES_PER_FILE)
        pictures = np.stack([draw(rng, kind) for kind in kinds])
        encoded = ps.Dataset.from_tensor_slices(pictures).map(
            lambda picture: ps.image.encode_jpeg(picture, quality=90)
        )
        part = path.with_suffix(".part")
        with ps.io.TarWriter(part) as tar:
            for i, jpeg in enumerate(encoded):
                number = file * PICTURES_PER_FILE + i
                tar.write(
                    {
                        "__key__": f"{number:06}",
                        "jpg": jpeg,
                        "cls": b"%d" % kinds[i],
                    }
                )
        part.rename(path)  # A file is there as a whole, or not.


def prepare(sample: dict) -> dict:
    """One picture: decoded, moved and flipped at random, scaled to -1..1."""
    image = ps.image.decode_jpeg(sample["jpg"], channels=3)
    image = ps.image.random_flip_left_right(image, seed=1)
    image = ps.image.resize_with_crop_or_pad(image, SIZE + 4, SIZE + 4)
    image = ps.image.random_crop(image, (SIZE, SIZE), seed=2)
    return {
        "id": ps.strings.to_number(sample["__key__"], ps.int32),
        "image": ps.cast(image, ps.float32) / 127.5 - 1,
        "label": ps.strings.to_number(sample["cls"], ps.int32),
    }


def dataset(folder: Path, batch: int) -> ps.Dataset:
    """Batches of pictures: another order each epoch, the same in each run."""
    files = sorted(str(path) for path in folder.glob("shapes-*.tar"))
    return (
        ps.TarDataset(files, ["jpg", "cls"])
        .shuffle(PICTURES_PER_FILE, seed=3)
        .map(prepare)
        .batch(batch, drop_remainder=True)
    )
