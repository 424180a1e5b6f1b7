"""P2: decoding and resizing by Pillow, in two processes."""

import photos
from workload import Compared

BATCH = 64

ROW = Compared(
    number="P2",
    title="Pillow decodes and resizes to 224, 2 processes, batch(64)",
    elements_per_batch=BATCH,
    must_reach=1.1,
    moonshot=None,
    is_ours_in_peers=True,
)


def _decode(file):
    import io

    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(file)) as image:
        small = image.convert("RGB").resize((224, 224), Image.BILINEAR)
        return np.asarray(small)


def _files():
    return photos.files(375, 500, 128)


def ours():
    import penstock as ps

    function = ps.python_function(
        _decode, output_signature=ps.TensorSpec((224, 224, 3), ps.uint8)
    )
    files = ps.Dataset.from_tensor_slices(_files()).repeat()
    return {"plain": files.map(function, num_parallel_calls=2).batch(BATCH)}


class _Photos:
    def __init__(self):
        self._files = _files()

    def __len__(self):
        return 1 << 40

    def __getitem__(self, i):
        return _decode(self._files[i % len(self._files)])


def peer():
    from torch.utils.data import DataLoader, SequentialSampler

    files = _Photos()
    options = {
        "batch_size": BATCH,
        "num_workers": 2,
        "sampler": SequentialSampler(files),
    }
    return {
        "DataLoader": DataLoader(files, **options),
        "DataLoader, further ahead": DataLoader(
            files, prefetch_factor=4, **options
        ),
    }


def check(batches):
    batch = next(batches)
    assert batch.shape == (BATCH, 224, 224, 3)
    assert 90 < batch.mean() < 170
