"""Simple audio recognition: WAV files to spectrograms."""

COMPARE = {"spectrograms": {"atol": 1e-4}}


def build(tf, folder):
    commands = ["no", "yes"]

    def decode_audio(audio_binary):
        # Decode WAV-encoded audio files to `float32` tensors, normalized
        # to the [-1.0, 1.0] range.
        audio, _ = tf.audio.decode_wav(contents=audio_binary)
        # Since all the data is single channel (mono), drop the `channels`
        # axis from the array.
        return tf.squeeze(audio, axis=-1)

    def get_label(file_path):
        parts = tf.strings.split(input=file_path, sep="/")
        # Note: You'll use indexing here instead of tuple unpacking to enable
        # this to work in a TensorFlow graph.
        return parts[-2]

    def get_waveform_and_label(file_path):
        label = get_label(file_path)
        audio_binary = tf.io.read_file(file_path)
        waveform = decode_audio(audio_binary)
        return waveform, label

    def get_spectrogram(waveform):
        # Zero-padding for an audio waveform with less than 400 samples.
        input_len = 400
        waveform = waveform[:input_len]
        zero_padding = tf.zeros([400] - tf.shape(waveform), dtype=tf.float32)
        # Cast the waveform tensors' dtype to float32.
        waveform = tf.cast(waveform, dtype=tf.float32)
        # Concatenate the waveform with `zero_padding`, which ensures all audio
        # clips are of the same length.
        equal_length = tf.concat([waveform, zero_padding], 0)
        # Convert the waveform to a spectrogram via a STFT.
        spectrogram = tf.signal.stft(
            equal_length, frame_length=64, frame_step=32
        )
        # Obtain the magnitude of the STFT.
        spectrogram = tf.abs(spectrogram)
        return spectrogram[..., tf.newaxis]

    def get_spectrogram_and_label_id(audio, label):
        spectrogram = get_spectrogram(audio)
        label_id = tf.argmax(label == commands)
        return spectrogram, label_id

    files_ds = tf.data.Dataset.list_files(f"{folder}/audio/*/*", shuffle=False)
    waveform_ds = files_ds.map(
        map_func=get_waveform_and_label, num_parallel_calls=tf.data.AUTOTUNE
    )
    spectrogram_ds = waveform_ds.map(
        map_func=get_spectrogram_and_label_id,
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return {
        "waveforms": waveform_ds.padded_batch(3),
        "spectrograms": spectrogram_ds.batch(2).cache().prefetch(2),
    }
