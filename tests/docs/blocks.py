#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""blocks.py ROOT COMMAND [CC] - what the documents tell people to type works.

Every fenced block of README.md, CONTRIBUTING.md and docs/guide, and every
literal display of docs/man, is in the list below with how it is checked. A
block that is not in the list, and an entry that no block has, are errors. The
commands run as they are written, in an empty directory, with a store of their
own; programs that they call and servers that they name are stand-ins. What a
program printed is fenced as "text"; a fence without a word, and a block that is
only indented, are errors. Commands inside of sentences and tables, `holdfast …`,
are run as well.
"""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

ROOT, COMMAND = sys.argv[1:3]
CC = sys.argv[3] if len(sys.argv) > 3 else "cc"

# Programs that the documents call, and what they do here.
STUBS = {
    "…": "", "pg_dump": "", "ffmpeg": "", "convert-one": "", "postpone": "",
    "complain": "", "make": "", "nightly": "", "sync-files": "",
    "git": "echo v4.2", "scheduler": "",
}
LOCAL_STUBS = ("deploy.sh", "migrate", "smoke-test", "switch-traffic",
               "report", "job", "deploy")
# Servers that the documents name: the store of the test answers for them.
SERVERS = ("redis://lock.example/0", "zk://zk1,zk2,zk3/locks",
           "etcd://e1,e2,e3/locks")

C_FRAME = """
#include <holdfast.h>
hf_client *client; hf_error err; uint64_t token;
void die(const char *); int refuse(const hf_error *);
void write_report(uint64_t); void undo_report(const char *);
int block(void);
int block(void)
{
%s
return 0;
}
"""


class Wrong(Exception):
    pass


class Place:
    """An empty home with stand-ins and a store."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="holdfast-docs-")
        self.bin = os.path.join(self.dir, "bin")
        self.store = os.path.join(self.dir, "store")
        os.mkdir(self.bin)
        os.mkdir(self.store, 0o700)
        os.mkdir(os.path.join(self.dir, "incoming"))
        self.write("incoming/one", "")
        os.symlink(os.path.abspath(COMMAND), os.path.join(self.bin, "holdfast"))
        for name, body in STUBS.items():
            self.script(os.path.join("bin", name), body)
        for name in LOCAL_STUBS:
            self.script(name, "")
        self.url = "local://" + self.store
        self.env = {"PATH": self.bin + ":/usr/bin:/bin:/usr/sbin",
                    "HOME": self.dir, "USER": "alice", "LOGNAME": "alice",
                    "LC_ALL": "C.UTF-8", "HOLDFAST_URL": self.url}

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def script(self, name, body):
        os.chmod(self.write(name, "#!/bin/sh\n%s\n" % body), 0o700)

    def run(self, argv, wanted=0):
        done = subprocess.run(argv, cwd=self.dir, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False)
        if done.returncode != wanted:
            raise Wrong("exit %d instead of %d: %s%s" % (
                done.returncode, wanted, done.stdout, done.stderr))
        return done

    def start(self, argv):
        return subprocess.Popen(argv, cwd=self.dir, env=self.env, text=True,
                                stdout=subprocess.PIPE, stdin=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def close(self):
        shutil.rmtree(self.dir)


def with_stand_ins(text, place):
    for server in SERVERS:
        text = text.replace(server, place.url)
    return text


# ---- how a block is checked --------------------------------------------------

def sh(text, place):
    """As a script; each command has to succeed."""
    path = place.write("block", with_stand_ins(text, place))
    place.run(["sh", "-e", path])


def sh_arguments(text, place):
    """The same, of a script with two arguments."""
    path = place.write("block", with_stand_ins(text, place))
    place.run(["sh", "-e", path, "in", "out"])


def sh_loose(text, place):
    """The script looks at exit codes itself."""
    place.run(["sh", place.write("block", with_stand_ins(text, place))])


def sh_locked(text, place):
    """Inside of the command of a run."""
    path = place.write("block", text)
    place.run(["holdfast", "run", "deploy/web", "--", "sh", "-e", path])


def crontab(text, place):
    """Each job is one line of five fields, and runs."""
    jobs = 0
    for line in text.splitlines():
        if re.match(r"\w+=", line):
            continue
        fields = line.split(None, 5)
        if len(fields) < 6 or line.rstrip().endswith("\\"):
            raise Wrong("not a line of a crontab: " + line)
        if re.search(r"(?<!\\)%", fields[5]):
            raise Wrong("cron takes % as the end of the command: " + line)
        job = with_stand_ins(fields[5], place).replace("40s", "0.1s")
        place.run(["sh", "-ec", job])
        jobs += 1
    if jobs == 0:
        raise Wrong("no job")


def console(text, place):
    """The commands behind "$" start, and print a first line like the page's."""
    holders = [place.start(["holdfast", "hold", "convert", "--slots", "4"]),
               place.start(["holdfast", "elect", "scheduler", "--", "cat"])]
    while place.run(["holdfast", "ls", "--names"]).stdout.count("\n") < 2:
        continue
    lines = text.splitlines()
    for command, shown in zip(lines, lines[1:]):
        if not command.startswith("$ "):
            continue
        child = place.start(["sh", "-c", "exec " + command[2:]])
        printed = child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        child.communicate()
        if printed.split()[:2] != shown.split()[:2]:
            raise Wrong("%s prints %r, not %r" % (command, printed, shown))
    for child in holders:
        child.stdin.close()
        child.wait()


def elected(text, place):
    """The command runs as the leader, and ends."""
    place.run(["sh", "-ec", with_stand_ins(text, place)])


def config(text, place):
    """A configuration without mistakes."""
    place.run(["holdfast", "config", "check", place.write("block", text)])


def unit(text, place):
    """A unit of systemd whose command starts."""
    command = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    command = command.replace("/usr/bin/scheduler", "true")
    place.run(["sh", "-ec", with_stand_ins(command, place)])


def c(text, place):
    """Compiles inside of a function."""
    text = text.replace("#include <holdfast.h>", "")
    path = place.write("block.c", C_FRAME % text)
    place.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
               "-I", os.path.join(os.path.abspath(ROOT), "include"), path])


def program(text, place):
    """Compiles without a warning, and runs."""
    root = os.path.abspath(ROOT)
    path = place.write("block.c", text)
    made = os.path.join(place.dir, "block")
    place.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", made,
               "-I", os.path.join(root, "include"), path,
               os.path.join(os.path.dirname(os.path.abspath(COMMAND)),
                            "libholdfast.so"), "-pthread"])
    place.env["LD_LIBRARY_PATH"] = os.path.dirname(os.path.abspath(COMMAND))
    place.run([made])


def python(text, place):
    """Runs, and was told that it holds."""
    path = place.write("block.py", "import json, subprocess\n" + text +
                       "\nassert event['event'] == 'held', event\n"
                       "assert worker.wait() == 0\n")
    place.run([sys.executable, path])


def sql(text, _place):
    """Each statement is SQL, and a smaller token changes nothing."""
    values = {"body": "new", "token": 7, "id": 1}
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.execute("CREATE TABLE fences(name text, token integer)")
    database.execute("CREATE TABLE account(id, balance, token)")
    database.execute("INSERT INTO fences VALUES ('nightly', 8)")
    for statement in text.replace("...", "").split(";"):
        if not re.sub(r"--.*", "", statement).strip():
            continue
        marks = statement.count("?")
        if "UPDATE report" in statement:
            database.execute("INSERT INTO report(id, fence) VALUES (1, 8)")
        cursor = database.execute(statement, (1,) * marks if marks else values)
        if statement.lstrip("- \n").startswith("UPDATE") and cursor.rowcount:
            raise Wrong("a late token changes a row: " + statement)


def java(text, _place):
    """Stands in a program that Maven compiles."""
    path = "bindings/java/examples/src/main/java/dev/holdfast/examples/Guide.java"
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        program = " ".join(file.read().split())
    if " ".join(text.split()) not in program:
        raise Wrong("not in " + path)


def spring(text, place):
    """Reads settings of a Spring program."""
    place.write("application.yml", "zk-lock:\n  address: zk1:2181\n")
    sh(text, place)


def fault(text, place):
    """URLs of the engine that fails on purpose."""
    for url in text.split():
        place.run(["holdfast", "-u", url.replace("local:", place.url),
                   "engines"])


def breaks(text, place):
    """Breaks the lock NAME of a holder that lives."""
    holder = place.start(["holdfast", "hold", "NAME"])
    token = json.loads(holder.stdout.readline())["token"]
    sh(re.sub(r"\bN\b", str(token), text), place)
    if holder.wait() != 79:
        raise Wrong("the holder was not told")


PKG_CONFIG = """Name: holdfast
Description: as the build made it
Version: 0
Cflags: -I%s/include
Libs: -L%s -lholdfast
"""


def developer(text, place):
    """Each ./dev WORD is one that ./dev help lists; what compiles, compiles. To build
    and to install is what tests/build/install.sh does, and CI."""
    root, build = os.path.abspath(ROOT), os.path.dirname(os.path.abspath(COMMAND))
    words = place.run([os.path.join(root, "dev"), "help"]).stdout
    for word in re.findall(r"\./dev ([a-z]+)", text):
        if word != "help" and not re.search(r"^  %s\b" % word, words, re.M):
            raise Wrong("./dev help does not list " + word)
    for name in ("report.c", "try.c"):
        shutil.copy(os.path.join(root, "examples", "report.c"),
                    os.path.join(place.dir, name))
    place.write("holdfast.pc", PKG_CONFIG % (root, build))
    place.env["PKG_CONFIG_PATH"] = place.dir
    for line in text.splitlines():
        if line.startswith("cc "):
            place.run(["sh", "-ec", CC + line[2:]])


class Elsewhere:
    """Not run here, and why; the files that the reason names are there."""

    def __init__(self, reason):
        for path in re.findall(r"(?:tests|examples)/[\w./]+", reason):
            assert os.path.exists(os.path.join(ROOT, path)), path


FIRST_STEPS = Elsewhere("tests/cli/first_steps_test.c types it")
CONTAINERS = Elsewhere("tests/soak/local_soak.c has processes in two pid namespaces; "
                       "nothing here runs Docker")
README = [developer, program, sh, developer, sh]
ARTICLES = [sh, sh, sh, sh, spring]
# Each block of each page, in order.
BLOCKS = {
    "README.md": README,
    "README.zh-CN.md": README,
    "CONTRIBUTING.md": [developer],
    "docs/guide/containers.md": [CONTAINERS, elected],
    "docs/guide/cron.md": [crontab, crontab, config],
    "docs/guide/deploy.md": [sh, sh_loose, sh, sh_locked],
    "docs/guide/failover.md": [sh, c],
    "docs/guide/fencing.md": [sh, sql, sql],
    "docs/guide/first-steps.md": [FIRST_STEPS] * 11,
    "docs/guide/from-the-articles.md": ARTICLES,
    "docs/guide/java.md": [java, java],
    "docs/guide/leader.md": [unit, console],
    "docs/guide/scripts.md": [sh] * 5,
    "docs/guide/troubleshooting.md": [breaks],
    "docs/guide/tutorial.md": [developer] + [program] * 7,
    "docs/guide/workers.md": [sh_arguments, sh_loose, python, console],
    "docs/zh-CN/from-the-articles.md": ARTICLES,
    "docs/zh-CN/troubleshooting.md": [breaks],
    "docs/man/holdfast.1": [sh, crontab, sh, sh, sh_loose],
    "docs/man/holdfast.7": [
        sql,
        Elsewhere("part of a function: examples/bounded_queue.c has the whole"),
        Elsewhere("a line of tmpfiles.d: tests/unit/local_directory_test.c has "
                  "such a directory"),
        Elsewhere("rights of a Redis user: tests/live/redis uses them"),
        Elsewhere("changes the users of an etcd server: tests/live/etcd"),
        fault],
    "docs/man/libholdfast.3": [config, c],
}
# Pages that a test of their own makes.
MADE = {"docs/guide/operating.md"}


# ---- the pages ---------------------------------------------------------------

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.M | re.S)


def fenced(text):
    return [block for word, block in FENCE.findall(text) if word != "text"]


def unmarked(name, text):
    """Fences without a word, and blocks that are only indented."""
    bare = [block for word, block in FENCE.findall(text) if not word]
    rest = FENCE.sub("", text)
    bare += re.findall(r"(?<=\n\n) {4}(?! *[-*0-9]).*", rest)
    for block in bare:
        print("%s: say what this is, as ```sh or ```text: %s" % (
            name, block.splitlines()[0].strip()))
    return len(bare)


def displays(text):
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.M | re.S)
    return [b.replace("\\e", "\\").replace("\\&", "").replace("\\-", "-")
            for b in blocks]


def pages():
    names = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md"]
    for folder in ("docs/guide", "docs/man", "docs/zh-CN"):
        names += sorted(folder + "/" + name
                        for name in os.listdir(os.path.join(ROOT, folder))
                        if os.path.isfile(os.path.join(ROOT, folder, name)))
    return [name for name in names if name not in MADE]


# ---- commands in sentences and tables ----------------------------------------

# What stands for something else there, and what needs a holder or a file first.
WORDS = {"URL": None, "CMD": "true", "NAME": "x", "…": "x -- true"}
STAYS = ("top", "hold", "bench", "elect")
# Half of a command: the option that the sentence is about.
UNFINISHED = {"holdfast run --reentrant", "holdfast run --require fenced",
              "holdfast run deploy/web", "holdfast metrics --textfile",
              "holdfast config check", "holdfast run -w 5s"}


def typed(command, place):
    """The words of a command, with what it leaves to the reader filled in."""
    for word, meaning in WORDS.items():
        command = re.sub(r"(?<!\S)%s(?!\S)" % word, meaning or place.url, command)
    return with_stand_ins(command, place)


def inline(name, text):
    """Every `holdfast VERB ARGUMENT…` is understood: no 64, no 78."""
    bad = 0
    for command in sorted(set(re.findall(r"`(holdfast [^`]+ [^`]+)`",
                                         FENCE.sub("", text)))):
        if command.split()[1] in STAYS or command in UNFINISHED:
            continue
        place = Place()
        place.write("application.yml", "zk-lock:\n  address: zk1:2181\n")
        done = subprocess.run(["sh", "-c", typed(command, place)], cwd=place.dir,
                              env=place.env, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=120, check=False)
        place.close()
        if done.returncode not in (0, 1, 75):
            print("%s: %s: exit %d: %s" % (name, command, done.returncode,
                                           done.stderr))
            bad += 1
    return bad


def check_page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        text = file.read()
    found = fenced(text) if name.endswith(".md") else displays(text)
    known = BLOCKS.get(name, [])
    bad = unmarked(name, text) + inline(name, text) if name.endswith(".md") else 0
    if len(found) != len(known):
        print("%s has %d blocks; tests/docs/blocks.py lists %d" % (
            name, len(found), len(known)))
        bad += 1
    for number, (block, how) in enumerate(zip(found, known), 1):
        if isinstance(how, Elsewhere):
            continue
        place = Place()
        try:
            how(block, place)
        except (Wrong, subprocess.TimeoutExpired, sqlite3.Error) as why:
            print("%s, block %d (%s): %s" % (name, number, how.__name__, why))
            bad += 1
        finally:
            place.close()
    return bad


# ---- what README says of flock(1) --------------------------------------------

def flock_letters():
    """README names exactly the letters that both have, and the two that
    differ."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = " ".join(file.read().split())
    said = re.search(r"`run` has flock\(1\)'s ((?:`-\w`[, and]*)+)", text)
    differ = re.search(r"((?:`-\w`[, and]*)+)mean something else", text)
    if not said or not differ:
        print("README.md does not say which letters of flock(1) run has")
        return 1
    said = set(re.findall(r"-(\w)", said.group(1)))
    differ = set(re.findall(r"-(\w)", differ.group(1)))
    theirs = set(re.findall(r"^\s+-(\w)[, ]", subprocess.run(
        ["flock", "--help"], capture_output=True, text=True,
        check=True).stdout, re.M)) - {"h", "V"}
    values = {"w": "1", "E": "3", "c": "true"}
    place = Place()
    try:
        for letter in said:
            place.run(["holdfast", "run", "x", "-" + letter]
                      + ([values[letter]] if letter in values else [])
                      + (["--", "true"] if letter != "c" else []))
    finally:
        place.close()
    if said | differ != theirs or said & differ:
        print("flock(1) has -%s; README.md says -%s are as there, -%s are not"
              % (" -".join(sorted(theirs)), " -".join(sorted(said)),
                 " -".join(sorted(differ))))
        return 1
    return 0


def main():
    bad = sum(check_page(name) for name in pages())
    for name in set(BLOCKS) - set(pages()):
        print("tests/docs/blocks.py lists %s, which is not there" % name)
        bad += 1
    return 1 if bad + flock_letters() else 0


if __name__ == "__main__":
    sys.exit(main())
