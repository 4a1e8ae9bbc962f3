# SPDX-License-Identifier: MIT
"""check.py ROOT - the page of the matrix is whole, and the documents call no
version supported that it does not have."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True

import page  # noqa: E402

NUMBER = r"\d+(?:\.\d+)*"
CLAIM = re.compile(rf"\b({'|'.join(page.ORDER)}|libpq)(?:[^.:]{{0,20}} version)? "
                   rf"({NUMBER}(?:(?:, | or | and |–){NUMBER})*)( or later)?")
# The least cells besides those of Debian's own versions.
ENOUGH = 12
# How much of a version is a release.
RELEASE = {"PostgreSQL": 1, "libpq": 1}


def spread(text):
    """The versions of "14–16, 18", one by one."""
    for part in re.split(", | or | and ", text):
        first, _, last = part.partition("–")
        if not last:
            yield first
            continue
        *common, low = first.split(".")
        high = last.split(".")[-1]
        for number in range(int(low), int(high) + 1):
            yield ".".join([*common, str(number)])


def seen(rows, product, version):
    wanted = version.split(".")
    for row in rows:
        if product == "libpq":
            if f"libpq {version}," in row.server:
                return True
        elif row.server == product and \
                row.version.split(".")[:len(wanted)] == wanted:
            return True
    return False


def claims(name, text, rows):
    """What is wrong with the versions that a document names as tried."""
    for product, versions, later in CLAIM.findall(text):
        if later:
            yield f"{name}: '{product} {versions} or later': nobody tried those"
        for version in spread(versions):
            if len(version.split(".")) < RELEASE.get(product, 2):
                yield f"{name}: '{product} {version}' is more than one release"
            elif not seen(rows, product, version):
                yield f"{name}: '{product} {version}' has no row that passes"


def promises(name, text):
    for product, versions, later in CLAIM.findall(text):
        if later:
            yield f"{name}: '{product} {versions} or later': nobody tried those"


def well_formed(rows):
    if sum(row.passes and row.source != "Debian" for row in rows) < ENOUGH:
        yield f"fewer than {ENOUGH} servers besides Debian's pass"
    for row in rows:
        if row.place is None:
            yield f"{row.line}: an unknown server"
        elif not re.fullmatch(NUMBER, row.version) or not row.modes or \
                not re.fullmatch(r"\d{4}-\d\d-\d\d", row.date):
            yield f"{row.line}: a field is malformed"


def mistakes(root):
    rows = page.rows((root / "docs/compatibility.md").read_text("utf-8"))
    yield from well_formed(rows)
    good = [row for row in rows if row.passes]
    readme = (root / "README.md").read_text("utf-8")
    yield from claims("README.md", readme, good)
    for file in [*root.glob("docs/man/*.[137]"), *root.glob("docs/guide/*.md"),
                 *root.glob("docs/internals/*-engine.md")]:
        yield from promises(file.name, file.read_text("utf-8"))


if __name__ == "__main__":
    found = list(mistakes(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
