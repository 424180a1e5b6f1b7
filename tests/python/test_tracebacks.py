"""What a traceback shows: the user's lines, and the methods called there."""

import traceback

import pytest

import penstock as ps

R = ps.Dataset.range


def frames(call):
    """The functions of a traceback, from the one below `call` on."""
    with pytest.raises(Exception) as caught:
        call()
    trace = caught.value.__traceback__.tb_next.tb_next
    names = [frame.name for frame in traceback.extract_tb(trace)]
    # Python 3.10 keeps the frame that cuts the others off.
    return [name for name in names if name != "call"]


def length(x):
    return len(x)


def no_batches(n):
    return R(n).batch(0)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: R(3).batch(0), ["batch"]),
        (lambda: R(3).batch(None), ["batch"]),
        (lambda: R(3).map(3), ["map"]),
        (lambda: R(3).map(ps.native(length)), ["map", "length"]),
        (lambda: R(3).flat_map(no_batches), ["flat_map", "no_batches"]),
        (
            lambda: ps.Dataset.from_tensor_slices(object()),
            ["from_tensor_slices"],
        ),
        (lambda: ps.TextLineDataset("x", buffer_size=-5), ["__init__"]),
        (lambda: R(3).batch(), []),
    ],
)
def test_build_errors_end_at_the_public_method(call, names):
    assert frames(call) == names


def test_what_the_user_raises_in_apply_is_shown_whole():
    def fail(dataset):
        raise KeyError("mine")

    assert frames(lambda: R(3).apply(fail)) == ["apply", "fail"]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: R(3).batch(), r"Dataset\.batch\(\) missing"),
        (lambda: R(3).take(1, 2, 3), r"Dataset\.take\(\) takes"),
        (lambda: R(3).set_epoch(), r"Dataset\.set_epoch\(\) missing"),
        (lambda: ps.Dataset.from_list(), r"Dataset\.from_list\(\) missing"),
        (lambda: ps.TextLineDataset(), r"TextLineDataset\.__init__\(\) miss"),
    ],
)
def test_methods_are_called_by_the_name_of_their_class(call, name):
    with pytest.raises(TypeError, match=name):
        call()


def test_zip_on_a_dataset_does_not_drop_it():
    a, b = R(2), R(3)
    with pytest.raises(
        ps.InvalidTypeError, match=r"Use ps\.Dataset\.zip\(a, b\)"
    ) as caught:
        a.zip(b)
    assert "test_tracebacks.py:" in str(caught.value)
    assert len(ps.Dataset.zip(a, b)) == 2
    assert len(ps.TextLineDataset.zip(a, b)) == 2
