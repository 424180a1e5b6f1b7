"""Batches by tokens, buckets by tokens, and boundaries chosen from lengths."""

import numpy as np
import pytest
from pipelines import lists

import penstock as ps


def words(*lengths):
    return ps.Dataset.from_list([[n] * n for n in lengths])


def shapes(dataset):
    return [batch.shape for batch in dataset]


# ---- batch_by_tokens


def test_a_batch_has_as_many_as_fit():
    ds = words(1, 2, 3, 1, 1).batch_by_tokens(4)
    assert lists(ds) == [[[1, 0], [2, 2]], [[3, 3, 3]], [[1], [1]]]
    assert ds.element_spec == ps.TensorSpec((None, None), np.int64)
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY


@pytest.mark.parametrize("window", [None, 7, 1000])
def test_no_batch_is_over_budget_and_nothing_is_lost(window):
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 60, 500).tolist()
    ds = words(*lengths).batch_by_tokens(128, window=window, max_rows=16)
    seen = []
    for batch in ds:
        assert batch.shape[0] * batch.shape[1] <= 128
        assert batch.shape[0] <= 16
        seen += [int(row[0]) for row in batch]
    assert sorted(seen) == sorted(lengths)


def test_a_window_pads_less():
    rng = np.random.default_rng(3)
    ds = words(*rng.integers(1, 60, 500).tolist())

    def padding(dataset):
        given = sum(batch.size for batch in dataset)
        return 1 - sum(int((batch > 0).sum()) for batch in dataset) / given

    plain = padding(ds.batch_by_tokens(256))
    sorted_ = padding(ds.batch_by_tokens(256, window=250))
    assert sorted_ < 0.1 < 0.3 < plain


@pytest.mark.parametrize(
    "length",
    [
        None,
        len,
        lambda x: ps.size(x),
        lambda x: len(x.tolist()),  # Python
    ],
)
def test_lengths_by_any_function(length):
    ds = words(1, 2, 2, 3).batch_by_tokens(4, length)
    assert shapes(ds) == [(2, 2), (1, 2), (1, 3)]
    ds = words(1, 2, 2, 3).bucket_by_sequence_length(length, [2], max_tokens=4)
    assert shapes(ds) == [(2, 2), (1, 3), (1, 1)]


def test_the_length_of_an_element_with_components():
    ds = ps.Dataset.from_list(
        [
            {"source": [1], "target": [1, 2, 3], "label": 1},
            {"source": [1, 2], "target": [1], "label": 2},
            {"source": [1], "target": [1], "label": 3},
        ]
    ).batch_by_tokens(6, padding_values={"source": -1, "target": 0, "label": 0})
    first, second = ds
    assert first["source"].tolist() == [[1, -1], [1, 2]]
    assert first["target"].shape == (2, 3)
    assert second["label"].tolist() == [3]
    pairs = ps.Dataset.from_list([([1, 2], 5), ([3], 6)])
    assert next(iter(pairs.batch_by_tokens(4)))[1].tolist() == [5, 6]


def test_without_a_length_a_function_is_asked_for():
    with pytest.raises(ps.InvalidTypeError, match="Give a length function"):
        ps.Dataset.range(3).batch_by_tokens(4)


def test_too_long():
    ds = words(1, 9, 1)
    it = iter(ds.batch_by_tokens(4))
    with pytest.raises(ps.InvalidArgumentError, match=r"max_tokens, 4; got 9"):
        next(it)
    assert lists(it) == [[[1], [1]]]
    assert shapes(ds.batch_by_tokens(4, too_long="drop")) == [(2, 1)]
    alone = ds.batch_by_tokens(4, too_long="alone")
    assert shapes(alone) == [(1, 1), (1, 9), (1, 1)]


def test_a_length_function_that_raises():
    def length(x):
        if x[0] == 2:
            raise RuntimeError("no length")
        return x.size

    for ds in (
        words(1, 2, 3).batch_by_tokens(9, length),
        words(1, 2, 3).bucket_by_sequence_length(length, [2], max_tokens=9),
    ):
        it = iter(ds)
        with pytest.raises(RuntimeError, match="no length") as raised:
            next(it)
        assert "test_lengths.py" in str(raised.value)
        assert sum(len(batch) for batch in it) == 2


def test_a_negative_length_is_an_error_of_its_element():
    ds = ps.Dataset.range(3).batch_by_tokens(9, lambda x: x - 1)
    it = iter(ds)
    with pytest.raises(ps.InvalidArgumentError, match="at least 0; got -1"):
        next(it)
    assert lists(it) == [[1, 2]]


@pytest.mark.parametrize("window", [None, 5])
def test_resumes_between_any_two_batches(window):
    rng = np.random.default_rng(1)
    ds = words(*rng.integers(1, 9, 60).tolist())
    ds = ds.shuffle(20, seed=2, reshuffle_each_iteration=False)
    ds = ds.batch_by_tokens(16, window=window)
    whole = lists(ds)
    it = iter(ds)
    for done in range(len(whole)):
        again = iter(ds)
        again.load_state_dict(it.state_dict())
        assert lists(again) == whole[done:]
        next(it)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens must be at least 1; got 0"),
        ({"max_tokens": 4, "window": 0}, "window must be"),
        ({"max_tokens": 4, "max_rows": 0}, "max_rows must be at least 1"),
        ({"max_tokens": 4, "too_long": "cut"}, '"error", "alone" or "drop"'),
    ],
)
def test_batch_by_tokens_refuses(arguments, message):
    with pytest.raises(ps.InvalidArgumentError, match=message):
        words(1).batch_by_tokens(**arguments)


# ---- Buckets within a budget


def test_bucket_sizes_follow_from_the_budget():
    ds = words(1, 2, 3, 4).bucket_by_sequence_length(
        len, [3, 5], max_tokens=8, pad_to_bucket_boundary=True
    )
    assert "batch_sizes=[4, 2, 1], max_tokens=8" in ds.describe()
    assert shapes(ds) == [(2, 4), (2, 2)]


def test_the_last_bucket_counts():
    ds = words(5, 5, 9, 5).bucket_by_sequence_length(len, [3], max_tokens=10)
    assert shapes(ds) == [(2, 5), (1, 9), (1, 5)]


def test_bucket_too_long():
    ds = words(1, 9, 1)
    dropped = ds.bucket_by_sequence_length(
        len, [3], max_tokens=4, too_long="drop"
    )
    assert shapes(dropped) == [(2, 1)]
    it = iter(ds.bucket_by_sequence_length(len, [3], max_tokens=4))
    with pytest.raises(ps.InvalidArgumentError, match="got 9"):
        next(it)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bucket_boundaries": [3]}, "got neither"),
        (
            {
                "bucket_boundaries": [3],
                "bucket_batch_sizes": [1, 1],
                "max_tokens": 9,
            },
            "got both",
        ),
        ({"bucket_boundaries": [3, 3], "max_tokens": 9}, "must ascend"),
        ({"bucket_boundaries": [3], "max_tokens": 0}, "max_tokens must be"),
        ({"bucket_boundaries": "best", "max_tokens": 9}, 'or "auto"'),
        (
            {"bucket_boundaries": "auto", "max_tokens": 9, "shapes": 0},
            "shapes must be",
        ),
        (
            {
                "bucket_boundaries": [20],
                "max_tokens": 9,
                "pad_to_bucket_boundary": True,
            },
            "the last boundary pads to, 19; got 9",
        ),
    ],
)
def test_buckets_refuse(arguments, message):
    with pytest.raises(ps.InvalidArgumentError, match=message):
        words(1, 2).bucket_by_sequence_length(len, **arguments)


# ---- Boundaries


def test_boundaries_from_anything():
    assert ps.choose_boundaries([1, 2, 9, 10], shapes=2) == [3, 11]
    assert ps.choose_boundaries({10: 1, 3: 9}, shapes=1) == [11]
    assert ps.choose_boundaries(np.arange(1, 101), shapes=2) == [51, 101]
    ds = words(1, 2, 9, 10)
    assert ps.choose_boundaries(ds, shapes=2) == [3, 11]
    assert ps.choose_boundaries(ds, lambda x: ps.size(x) * 2) == [3, 5, 19, 21]
    assert ps.choose_boundaries(ds, sample_rows=2) == [2, 3]


@pytest.mark.parametrize(
    ("lengths", "arguments", "message"),
    [
        ([], {}, "got none"),
        ([1], {"shapes": 0}, "shapes must be"),
        ([1], {"multiple_of": 0}, "multiple_of must be"),
        ([-1], {}, "a length must be"),
        ([9], {"max_tokens": 8}, "none that max_tokens has room for"),
    ],
)
def test_boundaries_refused(lengths, arguments, message):
    with pytest.raises(ps.InvalidArgumentError, match=message):
        ps.choose_boundaries(lengths, **arguments)
    with pytest.raises(ps.InvalidTypeError, match="integers"):
        ps.choose_boundaries([1.5])


def test_boundaries_of_an_empty_dataset():
    with pytest.raises(ps.InvalidArgumentError, match="no element to read"):
        ps.choose_boundaries(words(1).take(0))


def test_elements_that_fail_are_left_out_unless_all_do():
    ds = words(1, 2, 3).map(
        lambda x: ps.check_numerics(1 / ps.cast(x - 2, ps.float32), "no number")
    )
    assert ps.choose_boundaries(ds) == [2, 4]

    def length(x):
        raise RuntimeError("no length")

    with pytest.raises(RuntimeError, match="no length"):
        ps.choose_boundaries(words(1, 2), length)


def test_auto_boundaries_are_frozen_into_the_plan():
    rng = np.random.default_rng(5)
    lengths = np.minimum(1 + rng.geometric(0.05, 2000), 200).tolist()
    source = words(*lengths).shuffle(500)  # no seed: the sample has no shuffle

    def build():
        return source.bucket_by_sequence_length(
            None, "auto", max_tokens=1024, shapes=6, multiple_of=8
        )

    ds = build()
    boundaries = ps.choose_boundaries(
        lengths, shapes=6, multiple_of=8, max_tokens=1024
    )
    assert f"boundaries={boundaries}" in ds.describe()
    assert all(boundary % 8 == 1 for boundary in boundaries)
    assert build().fingerprint() == ds.fingerprint()
    assert sum(batch.shape[0] for batch in ds) == len(lengths)


def test_auto_with_one_size_for_all():
    ds = words(1, 2, 3, 4).bucket_by_sequence_length(len, "auto", 2, shapes=2)
    assert "batch_sizes=[2, 2, 2]" in ds.describe()
    assert shapes(ds) == [(2, 2), (2, 4)]


def test_auto_inside_a_function_is_refused():
    def inside(n):
        rows = ps.Dataset.range(n).map(lambda i: ps.arange(i))
        return rows.bucket_by_sequence_length(None, "auto", max_tokens=9)

    with pytest.raises(ps.PenstockError, match="choose them before"):
        list(ps.Dataset.range(3).flat_map(inside))


# ---- What is said of padding


@pytest.fixture(scope="module")
def wasteful(tmp_path_factory):
    """An explanation of a batch that pads much, and its trace."""
    path = tmp_path_factory.mktemp("trace") / "t.bin"
    ds = words(*[10, 10, 10, 50] * 50).repeat().padded_batch(4)
    return ds.explain(seconds=0.6, trace=path), path


def test_explain_says_what_is_padding(wasteful):
    e, _ = wasteful
    (node,) = [node for node in e.nodes if node.padding is not None]
    assert node.name == "padded_batch_2"
    assert node.padding.share == pytest.approx(0.6)
    assert node.padding.shapes == 1
    assert node.padding.padded_items == 200 * node.padding.batches
    assert "padding   60 % of what padded_batch_2 gives, in 1 shape" in str(e)
    assert e.to_json()["nodes"][e.nodes.index(node)]["padding"]["shapes"] == 1


def test_explain_names_better_boundaries(wasteful):
    e, _ = wasteful
    # Ranked by its gain, which depends on what is slow here.
    (fix,) = (
        each
        for each in e.fixes
        if each.title.startswith(
            "use bucket_by_sequence_length with bucket_boundaries=[11, 51] in "
            "place of padded_batch_2 at "
        )
    )
    assert "test_lengths.py" in fix.title
    assert "from 60 % to about 0 %" in fix.why
    assert fix.needs_the_user


def test_a_trace_has_padding(wasteful):
    e, path = wasteful
    again = ps.explain_trace(path)
    titles = [fix.title for fix in again.fixes]
    assert titles == [fix.title for fix in e.fixes]


def test_what_does_not_pad_says_nothing():
    e = ps.Dataset.range(10**6).batch(10).explain(seconds=0.3)
    assert all(node.padding is None for node in e.nodes)
    assert "padding" not in str(e)
