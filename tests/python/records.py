"""TFRecords, written slowly and plainly."""

import struct


def record(data):
    """A TFRecord; checksums are those of CRC32C, masked."""

    def masked(part):
        crc = crc32c(part)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

    length = struct.pack("<Q", len(data))
    return (
        length
        + struct.pack("<I", masked(length))
        + data
        + struct.pack("<I", masked(data))
    )


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def write_records(file, payloads):
    file.write_bytes(b"".join(map(record, payloads)))
