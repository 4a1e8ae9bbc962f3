# SPDX-License-Identifier: MIT
"""The tests of ctest, run on the server of a cell."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"

# The tests of an engine. Those that play a server of their own, that measure,
# or that attack for long say nothing about versions.
OF_ENGINE = {
    "redis": r"^(contract|live)_(redis|redlock)",
    "etcd": r"^(contract|live)_etcd",
    "zookeeper": r"^(contract|live)_zookeeper",
    "mysql": r"^(contract|live)_mysql",
    "postgres": r"^(contract|live)_postgres",
    "memcached": r"^(contract|live)_memcached",
}
NEVER = (r"_(attack|hostile|cost|torture|topology|leaves_nothing)$"
         r"|_mysql8(_tls)?$")

# What a test of the contract is called on the page, where its name is not
# enough.
DEFAULT_MODES = {
    "contract_redis": "redis", "contract_redis_plain": "plain",
    "contract_redlock": "redlock", "contract_etcd": "one member",
    "contract_etcd_cluster": "three members", "contract_zookeeper": "curator",
    "contract_zookeeper_ensemble": "ensemble", "contract_mysql": "table",
    "contract_postgres": "advisory", "contract_memcached": "memcached",
}


@dataclasses.dataclass
class Outcome:
    name: str
    passed: int
    failed: int
    output: str

    @property
    def good(self):
        return self.failed == 0 and self.passed > 0


def known():
    """What ctest knows, as {name: (command, variables, timeout)}."""
    told = subprocess.run(
        ["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"],
        stdout=subprocess.PIPE, check=True, text=True).stdout
    tests = {}
    for test in json.loads(told)["tests"]:
        properties = {each["name"]: each["value"]
                      for each in test.get("properties", [])}
        tests[test["name"]] = (
            test.get("command", []),
            dict(each.split("=", 1)
                 for each in properties.get("ENVIRONMENT", [])),
            properties.get("TIMEOUT", 600))
    return tests


def of_cell(tests, cell):
    unfit = "|".join(cell.without) or "$^"
    return [name for name in sorted(tests)
            if re.search(OF_ENGINE[cell.engine], name)
            and not re.search(NEVER, name) and not re.search(unfit, name)]


def mode(name):
    given = DEFAULT_MODES.get(name)
    return given or re.sub(r"^contract_[a-z]+_", "", name).replace("_", " ")


def count(output):
    """What was tested and passed, and what failed; what an engine does not
    promise is not tested."""
    untested = set(re.findall(r"^# not tested: ([a-z0-9_]+\.[a-z0-9_]+)",
                              output, re.M))
    passed = [name for name in re.findall(r"^ok - (\S+)", output, re.M)
              if name not in untested]
    return len(passed), len(re.findall(r"^not ok - ", output, re.M))


def judge(name, output):
    """A program says at its end that nothing failed, or something did."""
    passed, failed = count(output)
    if failed == 0 and (not re.search(r"^\d+ passed, 0 failed$", output, re.M)
                        or re.search(r"^status ", output, re.M)):
        failed = 1
    return Outcome(name, passed, failed, output)


def run(name, test, environment):
    """Run one test of ctest; a process group of its own ends with it."""
    command, variables, timeout = test
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, errors="replace",
                          stdin=subprocess.DEVNULL, cwd=ROOT,
                          env=os.environ | variables | environment,
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\nended after {timeout} s\n"
    if process.returncode != 0:
        output += f"\nstatus {process.returncode}\n"
    return judge(name, output)
