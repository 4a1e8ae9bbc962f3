# SPDX-License-Identifier: MIT
"""docs/compatibility.md: written by a run, read by the test of the documents."""

import dataclasses
import datetime
import re

import suites

PAGE = suites.ROOT / "docs" / "compatibility.md"
HEAD = """# Compatibility

The versions of servers that holdfast has been run against. `./dev matrix`
writes the table: it fetches each server once, runs the
[contract](internals/testing.md) in every mode and dialect, then the live suites
(faults, TLS, topologies), and notes how many expectations held. What an engine
does not promise is not counted. A test that fails is run once more, alone; what
fails twice is a failure here. A version that is not in this table is not called
supported.

"""
COLUMNS = ("server", "version", "from", "modes and dialects", "contract",
           "live", "date")
TAIL = """
*Debian* is the release that the tests run on; *Debian trixie* and *Debian sid*
are packages of other releases, unpacked beside it and run with their own C
library. A row with a client library has the server of Debian under it.

## What the table does not have

{missing}
"""
MISSING = """- **MySQL 8.4**: neither Maven nor PyPI, npm or Debian has its server; Maven has
  8.0, Debian sid has 9.
- **MySQL 9**: three live tests fail. Two log in by `mysql_native_password`, which
  it no longer has; one gives the server a certificate that has expired, which
  it no longer takes.
- **Redis 7.2 and 7.4**: not tried; Debian has 7.0 and 8.0. Valkey began as
  Redis 7.2.
- **Valkey 9.0** is a wheel without TLS and without `valkey-cli`, and is linked
  statically: the suites of TLS, clusters, faults and clocks run on 8.1 and 9.1.
- **ZooKeeper 3.8.7 and 3.9.6**: Maven lacks their parent.
- Services that only speak one of these protocols: none was tried."""
ORDER = ("Redis", "Valkey", "etcd", "ZooKeeper", "MariaDB", "MySQL",
         "PostgreSQL", "Memcached")


@dataclasses.dataclass
class Row:
    server: str
    version: str
    source: str
    modes: str
    contract: str
    live: str
    date: str

    @property
    def key(self):
        """A newer patch of the same release replaces the row."""
        return self.server, self.source, ".".join(self.version.split(".")[:2])

    @property
    def passes(self):
        return all(re.fullmatch(r"([1-9]\d*)/\1", each)
                   for each in (self.contract, self.live))

    @property
    def line(self):
        return "| " + " | ".join(dataclasses.astuple(self)) + " |"

    @property
    def place(self):
        """Where it is in the table; None if the server is unknown."""
        product = self.server.split(" with ")[0]
        if product not in ORDER:
            return None
        numbers = [int(each) for each in re.findall(r"\d+", self.version)]
        return ORDER.index(product), self.server, numbers, self.source


def tally(outcomes):
    passed = sum(outcome.passed for outcome in outcomes)
    return f"{passed}/{passed + sum(outcome.failed for outcome in outcomes)}"


def row(cell, version, outcomes):
    contract = [each for each in outcomes if each.name.startswith("contract")]
    live = [each for each in outcomes if each.name.startswith("live")]
    modes = sorted({suites.mode(each.name) for each in contract})
    server = cell.server + (f" with {cell.library}" if cell.library else "")
    return Row(server, version, cell.source, ", ".join(modes), tally(contract),
               tally(live), datetime.date.today().isoformat())


def rows(text):
    """The rows of a page."""
    found = []
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| server "):
            found.append(Row(*(each.strip() for each in line.split("|")[1:-1])))
    return found


def write(fresh):
    old = rows(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else []
    all_rows = {each.key: each for each in old + fresh}
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += [each.line for each in sorted(all_rows.values(),
                                           key=lambda each: each.place)]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n" +
                    TAIL.format(missing=MISSING), encoding="utf-8")
