"""Detection: boxes of a variable number, scaled, padded to a maximum."""

COMPARE = {"train": {"atol": 2e-2}}

MAX_BOXES = 5


def build(tf, folder):
    keys_to_features = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string),
        "image/source_id": tf.io.FixedLenFeature((), tf.string, ""),
        "image/height": tf.io.FixedLenFeature((), tf.int64, -1),
        "image/width": tf.io.FixedLenFeature((), tf.int64, -1),
        "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/ymax": tf.io.VarLenFeature(tf.float32),
        "image/object/class/label": tf.io.VarLenFeature(tf.int64),
    }

    def decode_boxes(parsed_tensors):
        xmin = parsed_tensors["image/object/bbox/xmin"]
        ymin = parsed_tensors["image/object/bbox/ymin"]
        xmax = parsed_tensors["image/object/bbox/xmax"]
        ymax = parsed_tensors["image/object/bbox/ymax"]
        return tf.stack([ymin, xmin, ymax, xmax], axis=-1)

    def decode(value):
        parsed = tf.io.parse_single_example(
            serialized=value, features=keys_to_features
        )
        for k in parsed:
            if isinstance(parsed[k], tf.SparseTensor):
                if parsed[k].dtype == tf.string:
                    parsed[k] = tf.sparse.to_dense(parsed[k], default_value="")
                else:
                    parsed[k] = tf.sparse.to_dense(parsed[k], default_value=0)
        image = tf.io.decode_image(parsed["image/encoded"], channels=3)
        image.set_shape([None, None, 3])
        boxes = decode_boxes(parsed)
        return {
            "image": image,
            "source_id": parsed["image/source_id"],
            "boxes": boxes,
            "classes": parsed["image/object/class/label"],
        }

    def pad_to_fixed_size(data, pad_value, output_shape):
        max_instances_per_image = output_shape[0]
        dimension = output_shape[1]
        data = tf.reshape(data, [-1, dimension])
        num_instances = tf.shape(data)[0]
        pad_length = max_instances_per_image - num_instances
        paddings = pad_value * tf.ones([pad_length, dimension])
        padded_data = tf.concat([data, paddings], axis=0)
        return tf.reshape(padded_data, output_shape)

    def prepare(element):
        image = tf.image.convert_image_dtype(element["image"], dtype=tf.float32)
        image -= tf.constant([0.485, 0.456, 0.406], shape=[1, 1, 3])
        image /= tf.constant([0.229, 0.224, 0.225], shape=[1, 1, 3])
        size = tf.cast(tf.shape(image)[0:2], tf.float32)
        scale = tf.reduce_min(tf.constant([24.0, 24.0]) / size)
        scaled_size = tf.round(size * scale)
        image = tf.image.resize(image, tf.cast(scaled_size, tf.int32))
        image = tf.image.pad_to_bounding_box(image, 0, 0, 24, 24)
        boxes = element["boxes"] * tf.concat([scaled_size, scaled_size], 0)
        # Keep boxes that have an area.
        area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        keep = tf.where(area > 0.0)[:, 0]
        boxes = tf.gather(boxes, keep)
        classes = tf.cast(tf.gather(element["classes"], keep), tf.float32)
        count = tf.shape(classes)[0]
        boxes = pad_to_fixed_size(boxes, -1.0, [MAX_BOXES, 4])
        classes = pad_to_fixed_size(classes, -1.0, [MAX_BOXES, 1])
        source = tf.strings.to_number(element["source_id"])
        labels = {"boxes": boxes, "classes": classes, "count": count}
        return image, labels, source

    dataset = tf.data.TFRecordDataset([f"{folder}/coco/train.tfrecord"])
    decoded = dataset.map(decode, num_parallel_calls=2)
    train = decoded.map(prepare, num_parallel_calls=2).batch(
        2, drop_remainder=True
    )
    boxes = decoded.map(lambda x: x["boxes"]).padded_batch(3)
    return {"train": train, "boxes": boxes}
