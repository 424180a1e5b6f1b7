"""The files that pipelines read: made from numbers, the same everywhere.

Examples are made by `penstock.compat.tf`; images as PNG (without loss) and JPEG
by its encoders. So what TensorFlow reads was written without it.
"""

import sqlite3
import wave
from pathlib import Path

import numpy as np

import penstock.compat.tf as tf

WORDS = [
    "the",
    "river",
    "runs",
    "down",
    "to",
    "a",
    "sea",
    "of",
    "salt",
    "and",
    "light",
    "while",
    "boats",
    "go",
    "by",
]


def example(**features):
    made = {}
    for key, value in features.items():
        key = key.replace("__", "/")
        items = value if isinstance(value, (list, np.ndarray)) else [value]
        first = items[0] if len(items) else 0
        if isinstance(first, bytes):
            feature = tf.train.Feature(
                bytes_list=tf.train.BytesList(value=items)
            )
        elif isinstance(first, (float, np.floating)):
            feature = tf.train.Feature(
                float_list=tf.train.FloatList(value=items)
            )
        else:
            feature = tf.train.Feature(
                int64_list=tf.train.Int64List(value=items)
            )
        made[key] = feature
    features = tf.train.Features(feature=made)
    return tf.train.Example(features=features).SerializeToString()


def write_records(path, records, compression=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)


def photo(number, height, width):
    """Smooth colours, so that JPEG is near to what it was made of."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        127 + 120 * np.sin(x / (5 + number) + c) * np.cos(y / (7 + c))
        for c in range(3)
    ]
    return np.stack(planes, -1).astype(np.uint8)


def jpeg(number, height, width):
    return tf.io.encode_jpeg(photo(number, height, width)).numpy()


def png(number, height, width):
    return tf.io.encode_png(photo(number, height, width)).numpy()


def make_inputs(folder):
    folder = Path(folder)
    rng = np.random.default_rng(7)
    _digits(folder / "mnist", rng)
    _imagenet(folder / "imagenet")
    _cifar(folder / "cifar", rng)
    _flowers(folder / "flowers")
    _text(folder / "text", rng)
    _bert(folder / "bert", rng)
    _criteo(folder / "criteo", rng)
    _coco(folder / "coco", rng)
    _speech(folder / "speech", rng)
    _tables(folder / "tables", rng)
    _audio(folder / "audio")


def _digits(folder, rng):
    for shard in range(2):
        records = []
        for i in range(10):
            pixels = rng.integers(0, 256, 28 * 28, dtype=np.uint8)
            records.append(
                example(image_raw=pixels.tobytes(), label=shard * 10 + i)
            )
        write_records(folder / f"train-{shard}.tfrecords", records)


def _imagenet(folder):
    for shard in range(2):
        records = []
        for i in range(3):
            n = shard * 3 + i
            records.append(
                example(
                    image__encoded=jpeg(n, 60 + 7 * n, 80 - 5 * n),
                    image__class__label=n + 1,
                    image__class__text=WORDS[n].encode(),
                    image__object__bbox__xmin=[0.1 * n, 0.2],
                    image__object__bbox__ymin=[0.1, 0.3],
                    image__object__bbox__xmax=[0.9, 0.8],
                    image__object__bbox__ymax=[0.8, 0.9],
                )
            )
        write_records(folder / f"validation-{shard:05d}-of-00002", records)


def _cifar(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    for batch in (1, 2):
        data = rng.integers(0, 256, (6, 1 + 32 * 32 * 3), dtype=np.uint8)
        data[:, 0] = np.arange(6) + 3 * (batch - 1)
        (folder / f"data_batch_{batch}.bin").write_bytes(data.tobytes())


def _flowers(folder):
    for c, name in enumerate(("daisy", "roses", "tulips")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(3):
            data = jpeg(3 * c + i, 40 + 3 * i, 50 - 4 * c)
            (folder / name / f"{i}.jpg").write_bytes(data)


def _text(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    lines, source, target = [], [], []
    for i in range(24):
        count = int(rng.integers(2, 12))
        words = [WORDS[j] for j in rng.integers(0, len(WORDS), count)]
        lines.append(f"{i % 2}\t{' '.join(words)}!")
        source.append(" ".join(words))
        target.append(" ".join(reversed(words)).upper())
    (folder / "reviews.tsv").write_text("\n".join(lines) + "\n")
    (folder / "source.txt").write_text("\n".join(source) + "\n")
    (folder / "target.txt").write_text("\n".join(target) + "\n")
    (folder / "vocab.txt").write_text("\n".join(WORDS[:10]) + "\n")
    for i, part in enumerate((lines[:12], lines[12:])):
        (folder / f"part{i}.txt").write_text("\n".join(part) + "\n")


def _bert(folder, rng):
    records = []
    for i in range(7):
        ids = rng.integers(0, 1000, 16)
        records.append(
            example(
                input_ids=ids,
                input_mask=np.ones(16, int),
                segment_ids=np.arange(16) // 8,
                masked_lm_positions=np.arange(4) * 2,
                masked_lm_ids=rng.integers(0, 1000, 4),
                masked_lm_weights=np.array([1.0, 1.0, 0.5, 0.0]),
                next_sentence_labels=i % 2,
            )
        )
    write_records(folder / "pretrain.tfrecord", records[:4])
    write_records(folder / "pretrain2.tfrecord", records[4:])


def _criteo(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["label,i0,i1,c0,c1"]
    records = []
    for i in range(20):
        numbers = rng.integers(0, 100, 2)
        words = [f"{int(x):08x}" for x in rng.integers(0, 1 << 30, 2)]
        first = "" if i % 5 == 0 else str(numbers[0])
        rows.append(f"{i % 2},{first},{numbers[1]},{words[0]},{words[1]}")
        records.append(
            example(
                label=float(i % 2),
                dense=[float(n) for n in numbers],
                category=[w.encode() for w in words[: 1 + i % 2]],
            )
        )
    (folder / "train.csv").write_text("\n".join(rows) + "\n")
    write_records(folder / "train.tfrecord", records, "GZIP")


def _coco(folder, rng):
    records = []
    for i in range(6):
        boxes = int(rng.integers(0, 4))
        corners = rng.random((4, boxes)).astype(np.float32)
        features = {
            "image__encoded": png(i, 32 + i, 40),
            "image__source_id": str(100 + i).encode(),
            "image__height": 32 + i,
            "image__width": 40,
        }
        if boxes:
            names = ("xmin", "ymin", "xmax", "ymax")
            for name, values in zip(names, corners, strict=True):
                features[f"image__object__bbox__{name}"] = list(values)
            features["image__object__class__label"] = list(
                rng.integers(1, 80, boxes)
            )
        records.append(example(**features))
    write_records(folder / "train.tfrecord", records)


def _speech(folder, rng):
    records = []
    for i in range(8):
        frames = int(rng.integers(3, 9))
        rows = [
            tf.train.Feature(
                float_list=tf.train.FloatList(
                    value=rng.normal(size=5).astype(np.float32)
                )
            )
            for _ in range(frames)
        ]
        tokens = [
            tf.train.Feature(int64_list=tf.train.Int64List(value=[int(t)]))
            for t in rng.integers(1, 30, 1 + i % 4)
        ]
        context = tf.train.Features(
            feature={
                "speaker": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[f"s{i}".encode()])
                )
            }
        )
        lists = tf.train.FeatureLists(
            feature_list={
                "features": tf.train.FeatureList(feature=rows),
                "tokens": tf.train.FeatureList(feature=tokens),
            }
        )
        made = tf.train.SequenceExample(context=context, feature_lists=lists)
        records.append(made.SerializeToString())
    write_records(folder / "train.tfrecord", records)


def _tables(folder, rng):
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["survived,sex,age,n_siblings,fare,class"]
    for i in range(15):
        sex = ("male", "female")[i % 2]
        fare = float(np.round(rng.random() * 80, 2))
        rows.append(f"{i % 2},{sex},{20 + i},{i % 3},{fare},c{i % 3}")
    (folder / "titanic.csv").write_text("\n".join(rows) + "\n")
    with sqlite3.connect(folder / "rivers.db") as connection:
        connection.execute("drop table if exists rivers")
        connection.execute("create table rivers (name text, length integer)")
        connection.executemany(
            "insert into rivers values (?, ?)",
            [("Aare", 288), ("Rhine", 1233), ("Tiber", 406)],
        )


def _audio(folder):
    for c, name in enumerate(("no", "yes")):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(3):
            times = np.arange(300 + 80 * i)
            samples = 12000 * np.sin(times / (3 + i + 4 * c))
            with wave.open(str(folder / name / f"{i}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(samples.astype("<i2").tobytes())
