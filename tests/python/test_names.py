"""Names that are not there."""

import pickle
import re
import traceback

import pytest

import penstock as ps

CASES = {
    "method": (
        lambda: ps.Dataset.range(3).suffle(2),
        "'Dataset' object has no attribute 'suffle'. Did you mean 'shuffle'?",
    ),
    "method of a source": (
        lambda: ps.TextLineDataset("x").bach(2),
        "'TextLineDataset' object has no attribute 'bach'. Did you mean "
        "'batch'?",
    ),
    "source": (
        lambda: ps.Dataset.from_tensor_slice([1]),
        "type object 'Dataset' has no attribute 'from_tensor_slice'. Did you "
        "mean 'from_tensor_slices'?",
    ),
    "function": (
        lambda: ps.squar,
        "module 'penstock' has no attribute 'squar'. Did you mean 'square'?",
    ),
    "class": (
        lambda: ps.TFRecordDataSet,
        "module 'penstock' has no attribute 'TFRecordDataSet'. Did you mean "
        "'TFRecordDataset'?",
    ),
    "module": (
        lambda: ps.string_,
        "module 'penstock' has no attribute 'string_'. Did you mean 'string'?",
    ),
    "format": (
        lambda: ps.CSVDataset,
        "module 'penstock' has no attribute 'CSVDataset'. Did you mean "
        "'CsvDataset'?",
    ),
    "image": (
        lambda: ps.image.decode_jpg,
        "module 'penstock.image' has no attribute 'decode_jpg'. Did you mean "
        "'decode_jpeg'?",
    ),
    "torchvision's": (
        lambda: ps.image.RandomHorizontalFlip,
        "module 'penstock.image' has no attribute 'RandomHorizontalFlip'. Use "
        "random_flip_left_right",
    ),
    "torchvision's of several": (
        lambda: ps.image.color_jitter,
        "module 'penstock.image' has no attribute 'color_jitter'. Use "
        "random_brightness, random_contrast, random_saturation and random_hue",
    ),
    "io": (
        lambda: ps.io.decode_jsn,
        "module 'penstock.io' has no attribute 'decode_jsn'. Did you mean "
        "'decode_json'?",
    ),
    "strings": (
        lambda: ps.strings.splt,
        "module 'penstock.strings' has no attribute 'splt'. Did you mean "
        "'split'?",
    ),
    "text": (
        lambda: ps.text.Wordpiece,
        "module 'penstock.text' has no attribute 'Wordpiece'. Did you mean "
        "'WordPiece'?",
    ),
    "lookup": (
        lambda: ps.lookup.Vocab,
        "module 'penstock.lookup' has no attribute 'Vocab'. Did you mean "
        "'Vocabulary'?",
    ),
    "nothing like it": (
        lambda: ps.Dataset.range(3).zzzz,
        "'Dataset' object has no attribute 'zzzz'",
    ),
    "private": (
        lambda: ps.Dataset.range(3)._suffle,
        "'Dataset' object has no attribute '_suffle'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_nearest_name_is_offered(name):
    use, text = CASES[name]
    with pytest.raises(AttributeError, match=f"^{re.escape(text)}$") as caught:
        use()
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Did you mean") == text.count("Did you mean")


def test_a_wrong_name_is_no_reason_to_run_as_python():
    with pytest.raises(ps.UnsupportedFunctionError) as caught:
        ps.Dataset.from_list([b"x"]).map(lambda x: ps.image.decode_jpg(x))
    assert "must use names that are there" in str(caught.value)
    assert "Did you mean 'decode_jpeg'? at " in str(caught.value)
    assert "test_names.py" in str(caught.value)


def test_names_that_are_there():
    ds = ps.Dataset.range(3)
    assert not hasattr(ds, "suffle")
    assert getattr(ds, "suffle", None) is None
    assert list(pickle.loads(pickle.dumps(ds)).map(lambda x: x + 1)) == [
        1,
        2,
        3,
    ]
    assert {"map", "shuffle"} < set(dir(ds))
