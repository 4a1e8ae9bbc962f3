# SPDX-License-Identifier: MIT
"""notes.py LIBRARY - every library that LIBRARY loads on use is named by a
note, as systemd's ELF_DLOPEN_METADATA wants it."""

import json
import re
import struct
import subprocess
import sys

VENDOR = b"FDO\0"
TYPE = 0x407C0C0A


def section(library, name):
    """The bytes of a section, from readelf's dump of it."""
    told = subprocess.run(["readelf", "--wide", "--hex-dump", name, library],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    words = re.findall(r"^  0x[0-9a-f]+ ((?:[0-9a-f]+ ){1,4})", told, re.M)
    return bytes.fromhex("".join(words).replace(" ", ""))


def notes(content):
    while content:
        name_size, size, kind = struct.unpack_from("=III", content)
        assert kind == TYPE and content[12:12 + name_size] == VENDOR, content
        start = 12 + (name_size + 3) // 4 * 4
        yield json.loads(content[start:start + size].rstrip(b"\0"))
        content = content[start + (size + 3) // 4 * 4:]


def main(library):
    named = set()
    for note in notes(section(library, ".note.dlopen")):
        for entry in note:
            assert entry["priority"] in ("recommended", "suggested"), entry
            assert re.fullmatch("[a-z]+", entry["feature"]), entry
            named.update(entry["soname"])
    loaded = {text.decode() for text in
              section(library, ".rodata").split(b"\0")
              if re.fullmatch(rb"lib[a-z0-9]+\.so\.\d+", text)}
    print("named:", *sorted(named), "\nloaded:", *sorted(loaded))
    return 0 if loaded and loaded <= named else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
