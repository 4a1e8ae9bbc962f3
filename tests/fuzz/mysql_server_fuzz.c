/* SPDX-License-Identifier: MIT */
/*
 * mysql_server_fuzz.c - a MariaDB or MySQL server that says anything.
 *
 * The engine is real, and so are libmariadb and the sockets between it and us:
 * the library connects by itself. The fuzzer says what the server answers to
 * each packet: done, an error, rows, a prepared statement, or bytes of its own;
 * or it ends a connection. The core is fuzz_core.c.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/mysql/mysql.h"
#include "fuzz_core.h"

/* Nothing has happened for so many turns, or it goes on for ever. */
enum { PEERS = 8, SILENCE = 6, TURNS = 400 };

/* What a byte of the input means, by its lowest three bits; the rest of it are
 * flags, and a length and so many bytes follow. */
enum { DONE, ERROR, ROWS, PREPARED, PACKET, BYTES, BEAT, MISCHIEF };

/* What is left of the input. */
struct input {
    const uint8_t *at;
    size_t len;
};

static struct {
    int fd; /* -1: none */
    bool logged_in;
    bool begins; /* the first text of a session of ours */
    uint8_t turn;
    size_t params; /* of what it was asked to prepare */
} peers[PEERS];
static int listener = -1;
static int port;
static bool wild; /* the greeting, too, is the fuzzer's */
static int silence;
static int64_t now_ns; /* turns by the clock */

static int64_t tell_time(void)
{
    return now_ns;
}

/* ---- saying ---------------------------------------------------------------- */

static void say(int peer, const void *bytes, size_t len)
{
    (void)!send(peers[peer].fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void say_packet(int peer, const void *payload, size_t len)
{
    uint8_t packet[4 + 1024];

    CHECK(len <= 1024);
    packet[0] = (uint8_t)len;
    packet[1] = (uint8_t)(len >> 8);
    packet[2] = 0;
    packet[3] = peers[peer].turn++;
    if (len > 0)
        memcpy(packet + 4, payload, len);
    say(peer, packet, 4 + len);
}

static void say_end(int peer, uint8_t status)
{
    const uint8_t end[] = {0xfe, 0, 0, status, 0};

    say_packet(peer, end, sizeof(end));
}

static void say_columns(int peer, size_t n)
{
    static const char column[] =
        "\3def\0\0\0\1c\1c\x0c\x21\0\xff\0\0\0\xfd\0\0\0"
        "\0";

    for (size_t i = 0; i < n; i++)
        say_packet(peer, column, sizeof(column));
    if (n > 0)
        say_end(peer, 2);
}

/* "Done"; the first bytes say how many rows, which number, what state. */
static void say_done(int peer, uint8_t flags, const uint8_t *bytes, size_t len)
{
    const uint8_t done[] = {0,
                            len > 0 ? bytes[0] % 251 : 1,
                            len > 1 ? bytes[1] % 251 : 9,
                            (uint8_t)(2 | (flags & 1) | (flags & 8)),
                            0,
                            0,
                            0};

    say_packet(peer, done, sizeof(done));
}

static void say_error(int peer, uint8_t flags)
{
    static const uint16_t codes[] = {1690, 1146, 1205, 1213, 1317, 1094, 1095,
                                     1054, 1243, 1045, 2013, 3572, 1615, 1053};
    uint16_t code = codes[flags % HF_COUNT_OF(codes)];
    uint8_t error[] = "\xff\0\0#HY000it is so";

    error[1] = (uint8_t)code;
    error[2] = (uint8_t)(code >> 8);
    say_packet(peer, error, sizeof(error) - 1);
}

/* So many columns, and rows whose fields are of the bytes. */
static void say_rows(int peer, uint8_t flags, const uint8_t *bytes, size_t len)
{
    uint8_t n = (uint8_t)(1 + flags % 16);

    say_packet(peer, &n, 1);
    say_columns(peer, n);
    while (len > 0) {
        uint8_t row[1024];
        size_t at = 0;

        for (size_t i = 0; i < n; i++) {
            size_t size = len > 0 ? *bytes % 24 : 0;

            if (len > 0 && *bytes >= 240) {
                row[at++] = 0xfb; /* NULL */
                size = 0;
            } else {
                size = size < len ? size : len > 0 ? len - 1 : 0;
                row[at++] = (uint8_t)size;
                memcpy(row + at, bytes + 1, size);
                at += size;
            }
            bytes += len > 0 ? 1 + size : 0;
            len -= len > 0 ? 1 + size : 0;
        }
        say_packet(peer, row, at);
    }
    say_end(peer, (uint8_t)(2 | (flags & 8)));
}

/* With as many values as there should be, or not. */
static void say_prepared(int peer, uint8_t flags)
{
    size_t n = peers[peer].params + (flags & 1);
    const uint8_t prepared[] = {
        0, 1, 0, 0, 0, (uint8_t)((flags & 2) / 2), 0, (uint8_t)n, 0, 0, 0, 0};

    say_packet(peer, prepared, sizeof(prepared));
    say_columns(peer, n);
    say_columns(peer, (flags & 2) / 2);
}

/* ---- what happens ---------------------------------------------------------- */

static void end_peer(int peer)
{
    if (peers[peer].fd >= 0)
        (void)close(peers[peer].fd);
    peers[peer].fd = -1;
}

/* The next words of the input; false at its end. @ret_last: this was all that
 * the packet is answered with. */
static bool play(struct hf__engine *engine, int peer, struct input *input,
                 bool *ret_last)
{
    const uint8_t *bytes = input->at + 2;
    uint8_t flags;
    size_t len;

    if (input->len < 2)
        return false;
    flags = input->at[0] >> 3;
    len = input->at[1] < input->len - 2 ? input->at[1] : input->len - 2;
    *ret_last = !(flags & 8);
    switch (input->at[0] & 7) {
    case DONE:
        say_done(peer, flags, bytes, len);
        break;
    case ERROR:
        say_error(peer, flags);
        *ret_last = true;
        break;
    case ROWS:
        say_rows(peer, flags, bytes, len);
        break;
    case PREPARED:
        say_prepared(peer, flags);
        *ret_last = true;
        break;
    case PACKET:
        say_packet(peer, bytes, len);
        break;
    case BYTES:
        say(peer, bytes, len);
        break;
    case BEAT:
        fuzz_core_beat(engine);
        *ret_last = false;
        break;
    default:
        end_peer(peer);
        *ret_last = true;
    }
    input->at += 2 + len;
    input->len -= 2 + len;
    return true;
}

static void greet(int peer)
{
    static const char maria[] =
        "\x0a"
        "5.5.5-10.11.9-MariaDB\0\x4d\0\0\0abcdefgh\0\xfe\xf7\x2d\2\0\x0f\0"
        "\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password";

    say_packet(peer, maria, sizeof(maria));
}

/* One packet of the client's: its first byte, or -1. */
static int hear(int peer)
{
    uint8_t packet[1 << 16];
    ssize_t n = recv(peers[peer].fd, packet, 4, MSG_DONTWAIT | MSG_PEEK);
    size_t len;

    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        end_peer(peer);
        return -1;
    }
    len = n == 4 ? packet[0] | (size_t)packet[1] << 8 : 0;
    if (n < 4 || len + 4 > sizeof(packet) ||
        recv(peers[peer].fd, packet, len + 4, MSG_DONTWAIT | MSG_PEEK) !=
            (ssize_t)(len + 4))
        return -1;
    (void)!recv(peers[peer].fd, packet, len + 4, MSG_DONTWAIT);
    peers[peer].turn = (uint8_t)(packet[3] + 1);
    peers[peer].begins =
        len > 14 && memcmp(packet + 5, "SET time_zone", 13) == 0;
    peers[peer].params = 0;
    for (size_t i = 5; i < len + 4; i++)
        peers[peer].params += packet[i] == '?';
    return len > 0 ? packet[4] : 0;
}

static void come(struct hf__engine *engine, struct input *input)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    bool last = false;
    int on = 1;

    if (fd >= 0) /* or what was said waits to be acknowledged */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (int i = 0; fd >= 0 && i < PEERS; i++) {
        if (peers[i].fd >= 0)
            continue;
        silence = 0;
        peers[i].fd = fd;
        peers[i].turn = 0;
        peers[i].logged_in = wild;
        if (!wild)
            greet(i);
        while (wild && peers[i].fd >= 0 && !last &&
               play(engine, i, input, &last))
            continue;
        return;
    }
    if (fd >= 0)
        (void)close(fd);
}

/* What a session of ours begins with; then the fuzzer answers. */
static void answer(struct hf__engine *engine, int peer, struct input *input)
{
    static const uint8_t session[] = {1, '1', 2, 'd', 'b', 1, 'x'};
    int command = hear(peer);
    bool last = false;

    if (command < 0)
        return;
    silence = 0;
    if (!peers[peer].logged_in) {
        peers[peer].logged_in = true;
        say_done(peer, 0, NULL, 0);
        return;
    }
    if (peers[peer].begins && !wild) {
        say_done(peer, 8, NULL, 0);
        say_rows(peer, 2, session, sizeof(session));
        return;
    }
    while (peers[peer].fd >= 0 && !last) {
        if (!play(engine, peer, input, &last))
            end_peer(peer);
    }
}

/* ---- running --------------------------------------------------------------- */

static void listen_once(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    if (listener >= 0)
        return;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, size) == 0);
    CHECK(listen(listener, 64) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    port = ntohs(address.sin_port);
    for (int i = 0; i < PEERS; i++)
        peers[i].fd = -1;
}

static void turn(struct fuzz_core *core)
{
    struct hf__loop_batch batch = {.n = 0};

    now_ns += 3 * HF_MS;
    (void)hf__loop_poll(&core->loop, &batch, 0);
    hf__loop_handle(&core->loop, &batch);
    fuzz_core_fire();
}

static void run(struct fuzz_core *core, struct input *input)
{
    const struct hf__mysql *mysql = (struct hf__mysql *)core->engine;
    bool asked = false;

    (void)core->engine->ops->connect(core->engine, NULL);
    silence = 0;
    for (int i = 0; i < TURNS && silence++ < SILENCE; i++) {
        turn(core);
        if (fuzz_core_connected() && !asked) {
            asked = true;
            fuzz_core_ask(core->engine);
        }
        come(core->engine, input);
        for (int peer = 0; peer < PEERS; peer++) {
            if (peers[peer].fd >= 0)
                answer(core->engine, peer, input);
        }
        if (mysql->main.step == HF__MYSQL_STEP_CLOSED &&
            (input->len == 0 ||
             core->engine->ops->connect(core->engine, NULL) != 0))
            break;
    }
    for (int peer = 0; peer < PEERS; peer++)
        end_peer(peer);
    for (int i = 0; i < TURNS && mysql->main.step != HF__MYSQL_STEP_CLOSED; i++)
        turn(core);
}

/* The first byte chooses mode and dialect, and who makes the greeting. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *dialect;
        const char *mode;
    } ways[] = {{"", "table"},
                {"", "get_lock"},
                {"", "for_update"},
                {"shedlock", ""},
                {"spring", ""}};
    struct input input = {data + 1, size - 1};
    struct fuzz_core core;
    char url[64];

    if (size == 0)
        return 0;
    fuzz_core_clock(tell_time);
    now_ns = HF_SECOND;
    listen_once();
    wild = (data[0] & 0x80) != 0;
    fuzz_core_hold((data[0] & 0x40) != 0);
    snprintf(url, sizeof(url), "mysql://u:p@127.0.0.1:%d/db", port);
    fuzz_core_open(&core, &hf__engine_mysql, url,
                   ways[data[0] % HF_COUNT_OF(ways)].dialect,
                   ways[data[0] % HF_COUNT_OF(ways)].mode);
    CHECK(hf__loop_init(&core.loop) == 0);
    run(&core, &input);
    fuzz_core_close(&core);
    fuzz_core_clock(NULL);
    return 0;
}
