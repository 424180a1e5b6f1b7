"""ImageNet for ResNet, as in TensorFlow's official models: evaluation.

Parsing of boxes, decode and central crop by the aspect-preserving resize, mean
subtraction. Training (random crops) is compared by shapes and ranges.
"""

COMPARE = {"eval": {"atol": 1.0}, "train": {"rows": ["1"]}}

CHANNEL_MEANS = [123.68, 116.78, 103.94]
RESIZE_MIN = 64
IMAGE_SIZE = 48


def build(tf, folder):
    def _parse_example_proto(example_serialized):
        feature_map = {
            "image/encoded": tf.io.FixedLenFeature(
                [], dtype=tf.string, default_value=""
            ),
            "image/class/label": tf.io.FixedLenFeature(
                [], dtype=tf.int64, default_value=-1
            ),
            "image/class/text": tf.io.FixedLenFeature(
                [], dtype=tf.string, default_value=""
            ),
        }
        sparse_float32 = tf.io.VarLenFeature(dtype=tf.float32)
        for side in ("xmin", "ymin", "xmax", "ymax"):
            feature_map[f"image/object/bbox/{side}"] = sparse_float32
        features = tf.io.parse_single_example(
            serialized=example_serialized, features=feature_map
        )
        label = tf.cast(features["image/class/label"], dtype=tf.int32)
        xmin = tf.expand_dims(features["image/object/bbox/xmin"].values, 0)
        ymin = tf.expand_dims(features["image/object/bbox/ymin"].values, 0)
        xmax = tf.expand_dims(features["image/object/bbox/xmax"].values, 0)
        ymax = tf.expand_dims(features["image/object/bbox/ymax"].values, 0)
        # Note that we impose an ordering of (y, x).
        bbox = tf.concat([ymin, xmin, ymax, xmax], 0)
        # Force the variable number of bounding boxes into the shape
        # [1, num_boxes, coords].
        bbox = tf.expand_dims(bbox, 0)
        bbox = tf.transpose(a=bbox, perm=[0, 2, 1])
        return features["image/encoded"], label, bbox

    def _smallest_size_at_least(height, width, resize_min):
        resize_min = tf.cast(resize_min, tf.float32)
        height, width = tf.cast(height, tf.float32), tf.cast(width, tf.float32)
        smaller_dim = tf.minimum(height, width)
        scale_ratio = resize_min / smaller_dim
        new_height = tf.cast(height * scale_ratio, tf.int32)
        new_width = tf.cast(width * scale_ratio, tf.int32)
        return new_height, new_width

    def _aspect_preserving_resize(image, resize_min):
        shape = tf.shape(input=image)
        height, width = shape[0], shape[1]
        new_height, new_width = _smallest_size_at_least(
            height, width, resize_min
        )
        return tf.image.resize(
            image,
            [new_height, new_width],
            method=tf.image.ResizeMethod.BILINEAR,
        )

    def _central_crop(image, crop_height, crop_width):
        shape = tf.shape(input=image)
        height, width = shape[0], shape[1]
        amount_to_be_cropped_h = height - crop_height
        crop_top = amount_to_be_cropped_h // 2
        amount_to_be_cropped_w = width - crop_width
        crop_left = amount_to_be_cropped_w // 2
        return tf.slice(
            image, [crop_top, crop_left, 0], [crop_height, crop_width, -1]
        )

    def _mean_image_subtraction(image, means, num_channels):
        if image.get_shape().ndims != 3:
            raise ValueError("Input must be of size [height, width, C>0]")
        means = tf.broadcast_to(means, tf.shape(image))
        return image - means

    def _decode_crop_and_flip(image_buffer, bbox, num_channels):
        sample_distorted_bounding_box = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(image_buffer),
            bounding_boxes=bbox,
            min_object_covered=0.1,
            aspect_ratio_range=[0.75, 1.33],
            area_range=[0.05, 1.0],
            max_attempts=100,
            use_image_if_no_bounding_boxes=True,
        )
        bbox_begin, bbox_size, _ = sample_distorted_bounding_box
        offset_y, offset_x, _ = tf.unstack(bbox_begin)
        target_height, target_width, _ = tf.unstack(bbox_size)
        crop_window = tf.stack(
            [offset_y, offset_x, target_height, target_width]
        )
        cropped = tf.image.decode_and_crop_jpeg(
            image_buffer, crop_window, channels=num_channels
        )
        return tf.image.random_flip_left_right(cropped)

    def preprocess_image(image_buffer, bbox, is_training):
        if is_training:
            image = _decode_crop_and_flip(image_buffer, bbox, 3)
            image = tf.image.resize(image, [IMAGE_SIZE, IMAGE_SIZE])
        else:
            image = tf.image.decode_jpeg(image_buffer, channels=3)
            image = _aspect_preserving_resize(image, RESIZE_MIN)
            image = _central_crop(image, IMAGE_SIZE, IMAGE_SIZE)
        image.set_shape([IMAGE_SIZE, IMAGE_SIZE, 3])
        return _mean_image_subtraction(image, CHANNEL_MEANS, 3)

    def parse_record(raw_record, is_training, dtype):
        image_buffer, label, bbox = _parse_example_proto(raw_record)
        image = preprocess_image(image_buffer, bbox, is_training)
        image = tf.cast(image, dtype)
        # Subtract one so that labels are in [0, 1000).
        label = tf.cast(tf.reshape(label, shape=[1]), dtype=tf.float32) - 1.0
        return image, label

    def input_fn(is_training, shuffle):
        dataset = tf.data.Dataset.from_tensor_slices(
            [f"{folder}/imagenet/validation-{i:05d}-of-00002" for i in range(2)]
        )
        if shuffle:
            dataset = dataset.shuffle(buffer_size=2)
        dataset = dataset.interleave(
            tf.data.TFRecordDataset,
            cycle_length=2,
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        if shuffle:
            dataset = dataset.shuffle(buffer_size=100).repeat(2)
        dataset = dataset.map(
            lambda value: parse_record(value, is_training, tf.float32),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        dataset = dataset.batch(3, drop_remainder=True)
        options = tf.data.Options()
        options.deterministic = not is_training
        return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)

    return {"eval": input_fn(False, False), "train": input_fn(True, True)}
