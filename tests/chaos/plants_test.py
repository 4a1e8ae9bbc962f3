#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plants_test.py ROOT LIBRARY - the list of planted mistakes is that of the
sources, and an ordinary library has none of them."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plants  # noqa: E402

ROOT, LIBRARY = sys.argv[1], sys.argv[2]


def planted():
    names = []
    for directory, _, files in os.walk(os.path.join(ROOT, "src")):
        for file in files:
            if file.endswith(".c"):
                with open(os.path.join(directory, file)) as text:
                    names += re.findall(r'HF__PLANTED\("(\w+)"\)', text.read())
    return names


class Plants(unittest.TestCase):
    def test_each_is_listed_and_each_listed_one_is_there(self):
        self.assertEqual(set(planted()), set(plants.PLANTS))

    def test_each_says_who_should_find_it(self):
        for name, plant in plants.PLANTS.items():
            self.assertIn(len(plant), (2, 4, 5), name)

    def test_none_is_in_an_ordinary_library(self):
        with open(LIBRARY, "rb") as library:
            whole = library.read()
        self.assertNotIn(b"hf__planted", whole)
        for name in plants.PLANTS:
            self.assertNotIn(name.encode(), whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
