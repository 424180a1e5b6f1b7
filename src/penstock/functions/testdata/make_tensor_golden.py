"""Writes tensor_golden.json: tensors as TensorFlow serializes them.

Each has its dtype, shape and items (as hexadecimal bytes), what
tf.io.serialize_tensor gives, and other TensorProtos of the same tensor that
tf.io.parse_tensor reads.

    .venv-bench/bin/python src/penstock/functions/testdata/make_tensor_golden.py
"""

import json
import pathlib

import numpy as np
import tensorflow as tf

NUMBERS = [
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32",
    "int64", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128",
    "bool",
]  # fmt: skip
SHAPES = [(), (1,), (3,), (2, 3), (0,), (0, 3), (2, 1, 2, 1)]


def numbers(dtype, shape):
    count = int(np.prod(shape))
    values = np.arange(count) * 7 - (0 if "uint" in dtype else 3)
    made = tf.cast(tf.constant(values.reshape(shape)), dtype)
    if dtype.startswith("complex"):
        made = made * tf.cast(1 - 2j, dtype)
    return made


def strings(shape):
    count = int(np.prod(shape))
    values = [b"\0\xff" * i + b"x" * (i % 5) for i in range(count)]
    return tf.constant(np.array(values, object).reshape(shape), tf.string)


def case(tensor):
    found = tensor.numpy()
    is_text = tensor.dtype == tf.string
    items = np.asarray(found, object).reshape(-1).tolist()
    listed = tf.make_tensor_proto(found, dtype=tensor.dtype)
    protos = [listed.SerializeToString()]
    for proto in protos:
        again = tf.io.parse_tensor(proto, tensor.dtype)
        assert again.shape == tensor.shape
    return {
        "dtype": tensor.dtype.name,
        "shape": list(tensor.shape),
        "items": (
            [item.hex() for item in items]
            if is_text
            else np.ascontiguousarray(found).tobytes().hex()
        ),
        "serialized": tf.io.serialize_tensor(tensor).numpy().hex(),
        "others": [proto.hex() for proto in protos],
    }


def lists():
    """Protos with lists of values; some shorter than their tensor."""
    proto = type(tf.make_tensor_proto(0))
    shape = tf.TensorShape([4]).as_proto()
    floats = proto(dtype=1, tensor_shape=shape, float_val=[1.5, 2.5])
    ints = proto(dtype=3, tensor_shape=shape, int_val=[-1, 7])
    bytes_ = proto(dtype=6, tensor_shape=shape, int_val=[-1, 7, 8, 9])
    longs = proto(dtype=9, tensor_shape=shape, int64_val=[1 << 40])
    halves = proto(dtype=19, tensor_shape=shape, half_val=[15360, 0])
    texts = proto(dtype=7, tensor_shape=shape, string_val=[b"a", b"bc"])
    nothing = proto(dtype=2, tensor_shape=shape)
    complexes = proto(dtype=8, tensor_shape=shape, scomplex_val=[1, 2, 3, 4])
    truths = proto(dtype=10, tensor_shape=shape, bool_val=[True, False])
    wide = proto(dtype=23, tensor_shape=shape, uint64_val=[1 << 63])
    for each in (
        floats, ints, bytes_, longs, halves, texts, nothing, complexes, truths,
        wide,
    ):  # fmt: skip
        data = each.SerializeToString()
        made = case(tf.io.parse_tensor(data, tf.as_dtype(each.dtype)))
        yield {**made, "others": [*made["others"], data.hex()]}


def main():
    cases = [case(numbers(d, s)) for d in NUMBERS for s in SHAPES]
    cases += [case(strings(s)) for s in SHAPES]
    cases += [case(numbers("int32", (130,))), case(strings((130,)))]
    cases += lists()
    file = pathlib.Path(__file__).with_name("tensor_golden.json")
    lines = ",\n".join(json.dumps(each) for each in cases)
    file.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
