"""Flowers from a folder: labels from paths, files read in the function."""

import os
import pathlib

COMPARE = {"all": {"atol": 2e-2}, "shuffled": "ranges"}


def build(tf, folder):
    data_dir = pathlib.Path(folder) / "flowers"
    class_names = sorted(item.name for item in data_dir.glob("*"))
    img_height, img_width = 24, 20

    def get_label(file_path):
        # Convert the path to a list of path components
        parts = tf.strings.split(file_path, os.path.sep)
        # The second to last is the class-directory
        one_hot = parts[-2] == class_names
        # Integer encode the label
        return tf.argmax(one_hot)

    def decode_img(img):
        # Convert the compressed string to a 3D uint8 tensor
        img = tf.io.decode_jpeg(img, channels=3)
        # Resize the image to the desired size
        return tf.image.resize(img, [img_height, img_width])

    def process_path(file_path):
        label = get_label(file_path)
        # Load the raw data from the file as a string
        img = tf.io.read_file(file_path)
        img = decode_img(img)
        return img / 255.0, label

    ordered = tf.data.Dataset.list_files(str(data_dir / "*/*"), shuffle=False)
    list_ds = tf.data.Dataset.list_files(str(data_dir / "*/*"), shuffle=False)
    image_count = len(list_ds)
    list_ds = list_ds.shuffle(image_count, reshuffle_each_iteration=False)
    val_size = int(image_count * 0.4)
    train_ds = list_ds.skip(val_size)

    train_ds = train_ds.map(process_path, num_parallel_calls=tf.data.AUTOTUNE)
    train_ds = train_ds.cache()
    train_ds = train_ds.shuffle(buffer_size=1000)
    train_ds = train_ds.batch(2)
    train_ds = train_ds.prefetch(buffer_size=tf.data.AUTOTUNE)
    return {
        "all": ordered.map(process_path).batch(4),
        "shuffled": train_ds,
    }
