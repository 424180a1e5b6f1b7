"""A function that uses Pillow, as torch users write it, and its photographs."""

import photos

BATCH = 64


def decode(file):
    import io

    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(file)) as image:
        small = image.convert("RGB").resize((224, 224), Image.BILINEAR)
        return np.asarray(small)


def photo_files():
    return photos.files(375, 500, 128)


class _Photos:
    def __init__(self):
        self._files = photo_files()

    def __len__(self):
        return 1 << 40

    def __getitem__(self, i):
        return decode(self._files[i % len(self._files)])


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
