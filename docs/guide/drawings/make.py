#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py [--check] - the drawings of README and the guide, as SVG beside this file.

A sequence is a list of lanes and of what happens in them, a decision a list of
questions. --check compares with the files that are there.
"""
import os
import sys
from xml.sax.saxutils import escape

HERE = os.path.dirname(os.path.abspath(__file__))
STYLE = ("text{font:14px system-ui,sans-serif;fill:#1f2933}"
         ".t{font-weight:600}.s{font-size:12px;fill:#52606d}"
         ".l{stroke:#9aa5b1;stroke-width:1}"
         ".a{stroke:#1f6feb;stroke-width:1.6;fill:none;marker-end:url(#m)}"
         ".held{fill:#2f9e44}.jeopardy{fill:#f08c00}.lost{fill:#c92a2a}"
         ".w{fill:#fff;font-weight:600}")
MARKER = ('<defs><marker id="m" viewBox="0 0 8 8" refX="7" refY="4" '
          'markerWidth="7" markerHeight="7" orient="auto">'
          '<path d="M0 0L8 4L0 8z" fill="#1f6feb"/></marker></defs>')


def text(x, y, words, cls="", anchor="middle"):
    return '<text x="%d" y="%d" class="%s" text-anchor="%s">%s</text>' % (
        x, y, cls, anchor, escape(words))


def page(width, height, title, body):
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
            'role="img" aria-label="%s">\n<style>%s</style>%s\n'
            '<rect width="%d" height="%d" fill="#fff"/>\n%s\n</svg>\n') % (
                width, height, escape(title), STYLE, MARKER, width, height,
                "\n".join(body))


def sequence(title, lanes, steps):
    """Lanes from left to right; a step is (from, to, words) or (lane, note)."""
    gap, top = 220, 70
    width = gap * len(lanes)
    height = top + 44 * len(steps) + 30
    x = {name: gap // 2 + gap * i for i, name in enumerate(lanes)}
    body = [text(width // 2, 22, title, "t")]
    for name in lanes:
        body.append(text(x[name], 50, name, "t"))
        body.append('<line class="l" x1="%d" y1="58" x2="%d" y2="%d"/>' % (
            x[name], x[name], height - 14))
    y = top + 22
    for step in steps:
        if len(step) == 2:
            lane, words = step
            body.append('<rect x="%d" y="%d" width="200" height="24" rx="4" '
                        'fill="#e6f0ff"/>' % (x[lane] - 100, y - 17))
            body.append(text(x[lane], y, words, "s"))
        else:
            begin, end, words = step
            body.append('<path class="a" d="M%d %dL%d %d"/>' % (
                x[begin], y, x[end], y))
            body.append(text((x[begin] + x[end]) // 2, y - 6, words, "s"))
        y += 44
    return page(width, height, title, body)


def lease():
    """The life of a lease whose renewals stop arriving."""
    body = [text(400, 22, "A lease of 30 s whose renewals fail from 10 s on", "t")]
    left, scale = 60, 20
    parts = [(0, 20, "held", "HELD"), (20, 29.4, "jeopardy", "JEOPARDY"),
             (29.4, 36, "lost", "LOST")]
    for begin, end, cls, word in parts:
        body.append('<rect class="%s" x="%d" y="60" width="%d" height="34"/>' % (
            cls, left + begin * scale, (end - begin) * scale))
        body.append(text(int(left + (begin + end) / 2 * scale), 82, word, "w"))
    for at, words in ((0, "acquire sent"), (10, "renewal fails"),
                      (20, "overdue: told"), (29.4, "claim ends: told"),
                      (30.4, "engine may regrant")):
        x = int(left + at * scale)
        low = at == 29.4
        body.append('<line class="l" x1="%d" y1="94" x2="%d" y2="%d"/>' % (
            x, x, 150 if low else 116))
        body.append(text(x, 166 if low else 132, words, "s",
                         "start" if at > 30 else "middle"))
    body.append(text(400, 196, "The claim is counted from before the request was "
                     "sent, less 2 % for the difference of two clocks.", "s"))
    return page(800, 210, "the timeline of a lease", body)


def decision(title, questions, yes, no, last):
    """Questions from top to bottom. Each is (words, answer that leads to the
    right, where it leads); the other answer leads to the next question."""
    body = [text(380, 22, title, "t")]
    y = 40
    for words, right, end in questions:
        body.append('<rect x="20" y="%d" width="400" height="40" rx="6" '
                    'fill="#e6f0ff"/>' % y)
        body.append(text(220, y + 25, words))
        body.append('<path class="a" d="M420 %dL490 %d"/>' % (y + 20, y + 20))
        body.append(text(452, y + 14, right, "s"))
        body.append('<rect x="492" y="%d" width="250" height="40" rx="6" '
                    'fill="#e6f4ea"/>' % y)
        body.append(text(617, y + 25, end))
        body.append('<path class="a" d="M220 %dL220 %d"/>' % (y + 40, y + 68))
        body.append(text(240, y + 60, no if right == yes else yes, "s"))
        y += 70
    body.append('<rect x="20" y="%d" width="400" height="40" rx="6" '
                'fill="#e6f4ea"/>' % y)
    body.append(text(220, y + 25, last))
    return page(760, y + 56, title, body)


def box(x, y, width, height, words, fill):
    """A box with lines of words in its middle; the first one is its title."""
    yield '<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s"/>' % (
        x, y, width, height, fill)
    top = y + height // 2 - 9 * len(words) + 14
    for i, line in enumerate(words):
        yield text(x + width // 2, top + 18 * i, line, "s" if i else "t")


def overview(title, callers, middle, engines):
    """Who calls on the left, what all of them get, the engines on the right."""
    tall = 44
    height = max(len(callers), len(engines)) * (tall + 10) + 20
    body = list(box(265, 20, 230, height - 40, middle, "#e6f0ff"))
    for column, x, width, arrow, fill in (
            (callers, 20, 190, 210, "#fff3e0"), (engines, 550, 230, 495, "#e6f4ea")):
        gap = (height - 40 - tall * len(column)) // max(len(column) - 1, 1)
        for i, words in enumerate(column):
            y = 20 + i * (tall + gap)
            body += box(x, y, width, tall, words, fill)
            body.append('<path class="a" d="M%d %dL%d %d"/>' % (
                arrow, y + 22, arrow + 51, y + 22))
    return page(800, height, title, body)


DRAWINGS = {
    "overview.svg": overview(
        "programs on the left, one lock, the engines on the right",
        [("C, C++", "libholdfast"), ("shell, cron, systemd", "holdfast run"),
         ("Java, Spring Boot", "Lock, @Locked")],
        ("one lock", "a lease that is renewed", "a line: first come, first served",
         "a token that only grows", "you are told of a loss"),
        [("this machine", "local:"), ("Redis, Memcached", "redis:// redlock:// memcached://"),
         ("ZooKeeper, etcd", "zk:// etcd://"),
         ("databases", "mysql:// postgresql://")]),
    "overview.zh-CN.svg": overview(
        "左边是程序，中间是同一把锁，右边是引擎",
        [("C、C++", "libholdfast"), ("shell、cron、systemd", "holdfast run"),
         ("Java、Spring Boot", "Lock、@Locked")],
        ("同一把锁", "租约，自动续期", "队列，先来先得", "token，只增不减",
         "锁丢失，及时通知"),
        [("本机", "local:"), ("Redis、Memcached", "redis:// redlock:// memcached://"),
         ("ZooKeeper、etcd", "zk:// etcd://"),
         ("数据库", "mysql:// postgresql://")]),
    "choosing.svg": decision(
        "Which engine?",
        [("Do several machines take part?", "no", "local:"),
         ("Is what you protect in MySQL or PostgreSQL?", "yes",
          "mode=for_update"),
         ("Would two holders at once do harm?", "no",
          "redis:// or memcached://"),
         ("Can the resource compare tokens?", "yes",
          "redis, zk, etcd, mode=table")],
        "yes", "no", "zk:// or etcd://, three servers"),
    "choosing.zh-CN.svg": decision(
        "用哪个引擎？",
        [("有多台机器参与吗？", "否", "local:"),
         ("要保护的数据在 MySQL 或 PostgreSQL 里吗？", "是",
          "mode=for_update"),
         ("两个持有者同时存在会造成损害吗？", "否",
          "redis:// 或 memcached://"),
         ("资源方能比较 token 吗？", "是", "redis、zk、etcd、mode=table")],
        "是", "否", "三台服务器的 zk:// 或 etcd://"),
    "lease.svg": lease(),
    "queue.svg": sequence(
        "Redis, local:, tables: the store keeps the line",
        ["holder", "store", "waiter"],
        [("waiter", "store", "acquire"), ("store", "the waiter is 1st in line"),
         ("holder", "store", "release"),
         ("store", "hands over in one step"),
         ("store", "waiter", "wake-up with the token")]),
    "nodes.svg": sequence(
        "ZooKeeper, etcd: each watches the one before it",
        ["holder", "servers", "waiter"],
        [("waiter", "servers", "create a numbered node"),
         ("waiter", "servers", "watch the node before it"),
         ("holder", "servers", "delete its node"),
         ("servers", "waiter", "the watch fires"),
         ("waiter", "servers", "look: am I the first?"),
         ("waiter", "held, with a token")]),
    "majority.svg": sequence(
        "RedLock: no server knows of the others",
        ["holder", "five servers", "waiter"],
        [("waiter", "five servers", "set if absent, on all five"),
         ("five servers", "waiter", "fewer than three say yes"),
         ("waiter", "five servers", "take back, and wait a while"),
         ("holder", "five servers", "delete on all"),
         ("waiter", "five servers", "set if absent, on all five"),
         ("waiter", "held, if three agree in time")]),
    "poll.svg": sequence(
        "Memcached, dialect=plain: nobody can wake a waiter",
        ["holder", "server", "waiter"],
        [("waiter", "server", "add, refused: whose grant is it?"),
         ("waiter", "waits, the longer it saw it"),
         ("holder", "server", "delete, if it is still mine"),
         ("waiter", "server", "add"),
         ("waiter", "held")]),
    "session.svg": sequence(
        "GET_LOCK, advisory locks: the database keeps the line",
        ["holder", "database", "waiter"],
        [("waiter", "database", "lock, which waits there"),
         ("holder", "database", "unlock"),
         ("database", "waiter", "the answer is the grant"),
         ("database", "a session's end frees its locks")]),
}


def main():
    bad = 0
    for name, made in DRAWINGS.items():
        path = os.path.join(HERE, name)
        if sys.argv[1:] == ["--check"]:
            with open(path, encoding="utf-8") as file:
                if file.read() != made:
                    print("%s is not what make.py makes" % path)
                    bad = 1
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(made)
    return bad


if __name__ == "__main__":
    sys.exit(main())
