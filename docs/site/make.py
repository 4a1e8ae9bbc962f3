#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py ROOT TO - the documents as a site, in TO/html.

The pages keep the layout of the repository, so that their links stay what they
are. What a page links to and is not a page goes along as a file. The manual
pages become Markdown by mandoc. mkdocs runs in strict mode: a link or an anchor
that leads nowhere is an error.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT, TO = (os.path.abspath(a) for a in sys.argv[1:3])
STAGE = os.path.join(TO, "pages")
# Title, pages. A page is named once; what is not named is an error.
NAV = [
    ("holdfast", ["README.md"]),
    ("Guide", [
        "docs/guide/first-steps.md", "docs/guide/choosing.md",
        "docs/guide/how-it-works.md", "docs/guide/tutorial.md",
        "docs/guide/java.md", "bindings/java/README.md",
        "docs/guide/cron.md", "docs/guide/deploy.md", "docs/guide/scripts.md",
        "docs/guide/workers.md", "docs/guide/leader.md",
        "docs/guide/databases.md", "docs/guide/fencing.md",
        "docs/guide/failover.md", "docs/guide/peers.md",
        "docs/guide/coming-from.md", "docs/guide/from-the-articles.md",
        "examples/articles/README.md", "docs/guide/operating.md",
        "docs/guide/troubleshooting.md", "docs/guide/tuning.md",
        "docs/guide/containers.md", "docs/guide/faq.md"]),
    ("中文", ["README.zh-CN.md", "docs/zh-CN/choosing.md",
             "docs/zh-CN/from-the-articles.md",
             "docs/zh-CN/troubleshooting.md", "docs/zh-CN/glossary.md"]),
    ("Manual", []),
    ("Reference", ["docs/compatibility.md", "SECURITY.md", "CHANGELOG.md",
                   "CONTRIBUTING.md"]),
]
# Folders whose pages all belong to one part.
PARTS = [("Reference", "docs/benchmarks"), ("Reference", "docs/reliability"),
         ("Internals", "docs/internals"), ("Internals", "docs/internals/journal")]

CONFIG = """\
site_name: holdfast
site_description: One lock with one meaning, on whichever engine you run
docs_dir: %s
site_dir: %s
use_directory_urls: false
strict: true
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.indexes, content.code.copy, search.highlight]
plugins:
  - search:
      lang: [en, zh]
markdown_extensions:
  - tables
  - toc: {permalink: true}
  - pymdownx.superfences
validation:
  omitted_files: warn
  absolute_links: warn
  unrecognized_links: warn
  anchors: warn
nav:
%s"""


def stage(name):
    path = os.path.join(STAGE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    return path


def linked(page, text):
    """The files that a page links to."""
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", link):
            yield os.path.normpath(os.path.join(os.path.dirname(page), link))


def add_page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        text = file.read()
    with open(stage(name), "w", encoding="utf-8") as file:
        file.write(text)
    for other in linked(name, text):
        source = os.path.join(ROOT, other)
        if not other.endswith(".md") and os.path.isfile(source):
            shutil.copyfile(source, stage(other))


def add_manual():
    names = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs/man/*.[137]")) +
                       glob.glob(os.path.join(ROOT, "docs/man/*/*.[137]"))):
        name = os.path.relpath(path, ROOT) + ".md"
        made = subprocess.run(["mandoc", "-T", "markdown", path], check=True,
                              capture_output=True, text=True).stdout
        with open(stage(name), "w", encoding="utf-8") as file:
            file.write("# %s\n\n" % os.path.basename(path) +
                       re.sub(r"^#", "##", made, flags=re.M))
        names.append(name)
    return names


def parts():
    found = {title: list(pages) for title, pages in NAV}
    found["Manual"] = add_manual()
    for title, folder in PARTS:
        found.setdefault(title, []).extend(sorted(
            folder + "/" + name
            for name in os.listdir(os.path.join(ROOT, folder))
            if name.endswith(".md")) if os.path.isdir(
                os.path.join(ROOT, folder)) else [])
    return found


def main():
    shutil.rmtree(TO, ignore_errors=True)
    found = parts()
    for title, pages in found.items():
        for page in pages if title != "Manual" else []:
            add_page(page)
    nav = "".join(
        "  - %s:\n%s" % (title, "".join(
            "      - %s\n" % page for page in pages)) for title, pages in found.items() if pages)
    config = os.path.join(TO, "mkdocs.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG % (STAGE, os.path.join(TO, "html"), nav))
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "-f",
                           config], check=False,
                          env=dict(os.environ, TMPDIR=TO,
                                   NO_MKDOCS_2_WARNING="1")).returncode


if __name__ == "__main__":
    sys.exit(main())
