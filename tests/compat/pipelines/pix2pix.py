"""pix2pix: two images in one file, jittered; a flip decided by `if`."""

COMPARE = {"train": "ranges", "test": {"atol": 2e-2}}

HEIGHT = WIDTH = 16


def build(tf, folder):
    def load(image_file):
        # Read and decode an image file to a uint8 tensor
        image = tf.io.read_file(image_file)
        image = tf.io.decode_jpeg(image)
        # Split each image tensor into two tensors:
        # - one with a real building facade image
        # - one with an architecture label image
        w = tf.shape(image)[1]
        w = w // 2
        input_image = image[:, w:, :]
        real_image = image[:, :w, :]
        # Convert both images to float32 tensors
        input_image = tf.cast(input_image, tf.float32)
        real_image = tf.cast(real_image, tf.float32)
        return input_image, real_image

    def resize(input_image, real_image, height, width):
        input_image = tf.image.resize(
            input_image,
            [height, width],
            method=tf.image.ResizeMethod.NEAREST_NEIGHBOR,
        )
        real_image = tf.image.resize(
            real_image,
            [height, width],
            method=tf.image.ResizeMethod.NEAREST_NEIGHBOR,
        )
        return input_image, real_image

    def random_crop(input_image, real_image):
        stacked_image = tf.stack([input_image, real_image], axis=0)
        cropped_image = tf.image.random_crop(
            stacked_image, size=[2, HEIGHT, WIDTH, 3]
        )
        return cropped_image[0], cropped_image[1]

    # Normalizing the images to [-1, 1]
    def normalize(input_image, real_image):
        input_image = (input_image / 127.5) - 1
        real_image = (real_image / 127.5) - 1
        return input_image, real_image

    @tf.function()
    def random_jitter(input_image, real_image):
        # Resizing to a little more
        input_image, real_image = resize(input_image, real_image, 20, 20)
        # Random cropping back
        input_image, real_image = random_crop(input_image, real_image)
        if tf.random.uniform(()) > 0.5:
            # Random mirroring
            input_image = tf.image.flip_left_right(input_image)
            real_image = tf.image.flip_left_right(real_image)
        return input_image, real_image

    def load_image_train(image_file):
        input_image, real_image = load(image_file)
        input_image, real_image = random_jitter(input_image, real_image)
        input_image, real_image = normalize(input_image, real_image)
        return input_image, real_image

    def load_image_test(image_file):
        input_image, real_image = load(image_file)
        input_image, real_image = resize(input_image, real_image, HEIGHT, WIDTH)
        input_image, real_image = normalize(input_image, real_image)
        return input_image, real_image

    pattern = f"{folder}/flowers/roses/*.jpg"
    train_dataset = tf.data.Dataset.list_files(pattern)
    train_dataset = train_dataset.map(
        load_image_train, num_parallel_calls=tf.data.AUTOTUNE
    )
    train_dataset = train_dataset.shuffle(400)
    train_dataset = train_dataset.batch(1)
    test_dataset = tf.data.Dataset.list_files(pattern, shuffle=False)
    test_dataset = test_dataset.map(load_image_test)
    return {"train": train_dataset, "test": test_dataset.batch(1)}
