"""LZF, the way in which servers pack strings of their snapshots."""


def unpacked(packed: bytes) -> bytes:
    """What was packed: runs of new bytes, and copies of what was there before; IndexError if it is damaged."""
    out, at = bytearray(), 0
    while at < len(packed):
        control, at = packed[at], at + 1
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length, at = length + packed[at], at + 1
        back, at = ((control & 31) << 8 | packed[at]) + 1, at + 1
        for _ in range(length + 2):
            out.append(out[-back])
    return bytes(out)
