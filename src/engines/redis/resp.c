/* SPDX-License-Identifier: MIT */
/*
 * resp.c - the Redis protocol, version 3.
 *
 * The server is not trusted. A length is believed only when it is within
 * bounds, and memory is taken only for bytes that have arrived. The scanner
 * keeps its place inside a message, so that a message that comes in many small
 * pieces is looked at once, not once per piece; only an unfinished line or text
 * is looked at again.
 *
 * We read the protocol ourselves instead of by a library: the one at hand
 * (hiredis 0.14) does not know version 3, whose push messages let one
 * connection carry answers and grants in one order, and believes lengths.
 */
#include "engines/redis/resp.h"

/* ---- scanning ---------------------------------------------------------- */

/* A line: its text without CR LF, and the bytes it takes. */
struct line {
    const char *text;
    size_t len;
    size_t bytes;
};

static int find_line(const char *bytes, size_t len, struct line *line)
{
    size_t most = len < HF__RESP_LINE ? len : HF__RESP_LINE;
    const char *end = most > 0 ? memchr(bytes, '\n', most) : NULL;

    if (!end)
        return len >= HF__RESP_LINE ? HF__RESP_BAD : HF__RESP_MORE;
    line->bytes = (size_t)(end - bytes) + 1;
    if (line->bytes < 2 || end[-1] != '\r')
        return HF__RESP_BAD;
    line->text = bytes;
    line->len = line->bytes - 2;
    return HF__RESP_WHOLE;
}

/* Decimal, with a sign, within 64 bits. */
static bool parse_number(const char *text, size_t len, int64_t *ret_number)
{
    bool negative = len > 0 && text[0] == '-';
    const char *end = text + len;
    uint64_t number = 0;

    text += negative || (len > 0 && text[0] == '+');
    if (text == end || end - text > 19) /* as many digits cannot overflow */
        return false;
    for (; text < end; text++) {
        unsigned digit = (unsigned char)*text - (unsigned)'0';

        if (digit > 9)
            return false;
        number = 10 * number + digit;
    }
    if (number > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_number = (int64_t)(negative ? 0 - number : number);
    return true;
}

/* The length of a text or list; -1 is null. */
static bool parse_length(const struct line *line, int64_t *ret_length)
{
    return parse_number(line->text + 1, line->len - 1, ret_length) &&
           *ret_length >= -1 && *ret_length <= HF__RESP_MESSAGE;
}

static bool is_text(char type)
{
    return type == '$' || type == '=' || type == '!';
}

static bool is_list(char type)
{
    return type == '*' || type == '~' || type == '>' || type == '%' ||
           type == '|';
}

static bool is_map(char type)
{
    return type == '%' || type == '|';
}

/* An attribute was finished: the value that it is about is still to come. */
static int finish_attribute(struct hf__resp_scan *scan)
{
    if (scan->depth == 0)
        scan->begin = scan->at;
    return HF__RESP_MORE;
}

/* One value was finished: with it, perhaps, the lists around it. */
static int finish(struct hf__resp_scan *scan)
{
    while (scan->depth > 0 && --scan->left[scan->depth - 1] == 0) {
        if (scan->attribute[--scan->depth])
            return finish_attribute(scan);
    }
    return scan->depth == 0 ? HF__RESP_WHOLE : HF__RESP_MORE;
}

static int open_list(struct hf__resp_scan *scan, char type, int64_t length)
{
    if (type == '|' && length <= 0)
        return length == 0 ? finish_attribute(scan) : HF__RESP_BAD;
    if (length <= 0)
        return finish(scan);
    /* Each value takes at least three bytes. */
    if (scan->depth == HF__RESP_DEPTH || length > HF__RESP_MESSAGE / 6)
        return HF__RESP_BAD;
    scan->attribute[scan->depth] = type == '|';
    scan->left[scan->depth++] = (uint32_t)(is_map(type) ? 2 * length : length);
    return HF__RESP_MORE;
}

static bool line_is_good(char type, const struct line *line)
{
    int64_t ignored;

    switch (type) {
    case '+':
    case '-':
    case ',':
    case '(':
        return true;
    case ':':
        return parse_number(line->text + 1, line->len - 1, &ignored);
    case '_':
        return line->len == 1;
    case '#':
        return line->len == 2 && (line->text[1] == 't' || line->text[1] == 'f');
    default:
        return false;
    }
}

/* One value or head of a list; *ret_stuck: bytes are missing. */
static int scan_one(struct hf__resp_scan *scan, const char *bytes, size_t len,
                    bool *ret_stuck)
{
    struct line line;
    int64_t length = -1;
    int rc = find_line(bytes, len, &line);

    *ret_stuck = rc == HF__RESP_MORE;
    if (rc != HF__RESP_WHOLE)
        return rc;
    if (is_text(bytes[0]) || is_list(bytes[0])) {
        if (!parse_length(&line, &length))
            return HF__RESP_BAD;
    } else if (!line_is_good(bytes[0], &line)) {
        return HF__RESP_BAD;
    }
    if (is_list(bytes[0])) {
        scan->at += line.bytes;
        return open_list(scan, bytes[0], length);
    }
    if (is_text(bytes[0]) && length >= 0) {
        size_t all = line.bytes + (size_t)length + 2;

        *ret_stuck = len < all;
        if (*ret_stuck)
            return HF__RESP_MORE;
        if (bytes[all - 2] != '\r' || bytes[all - 1] != '\n')
            return HF__RESP_BAD;
        line.bytes = all;
    }
    scan->at += line.bytes;
    return finish(scan);
}

int hf__resp_scan(struct hf__resp_scan *scan, const char *bytes, size_t len)
{
    bool stuck = false;
    int rc = HF__RESP_MORE;

    while (rc == HF__RESP_MORE && !stuck) {
        if (scan->at == len)
            break;
        rc = scan_one(scan, bytes + scan->at, len - scan->at, &stuck);
    }
    if (rc == HF__RESP_MORE && len >= HF__RESP_MESSAGE)
        return HF__RESP_BAD;
    return rc;
}

/* ---- walking ----------------------------------------------------------- */

static struct hf__resp_value text_value(struct hf__resp *resp, char type,
                                        int64_t length)
{
    struct hf__resp_value value = {.type = HF__RESP_NULL};

    if (length < 0)
        return value;
    value.type = type == '!' ? HF__RESP_ERROR : HF__RESP_TEXT;
    value.text = resp->at;
    value.len = (size_t)length;
    resp->at += length + 2;
    if (type == '=' && value.len >= 4) { /* "txt:" */
        value.text += 4;
        value.len -= 4;
    }
    return value;
}

static struct hf__resp_value line_value(const struct line *line)
{
    struct hf__resp_value value = {
        .type = HF__RESP_TEXT,
        .text = line->text + 1,
        .len = line->len - 1,
    };

    if (line->text[0] == '-')
        value.type = HF__RESP_ERROR;
    else if (line->text[0] == '_')
        value.type = HF__RESP_NULL;
    else if (line->text[0] == '#' || line->text[0] == ':')
        value.type = HF__RESP_NUMBER;
    if (line->text[0] == '#')
        value.number = line->text[1] == 't';
    else if (line->text[0] == ':')
        (void)parse_number(value.text, value.len, &value.number); /* scanned */
    return value;
}

/* The next value or attribute; *ret_attribute: which of them. */
static struct hf__resp_value walk(struct hf__resp *resp, bool *ret_attribute)
{
    struct hf__resp_value value = {.type = HF__RESP_END};
    struct line line;
    int64_t length = -1;

    if (resp->at >= resp->end ||
        find_line(resp->at, (size_t)(resp->end - resp->at), &line) !=
            HF__RESP_WHOLE)
        return value;
    resp->at += line.bytes;
    *ret_attribute = line.text[0] == '|';
    if (!is_text(line.text[0]) && !is_list(line.text[0]))
        return line_value(&line);
    (void)parse_length(&line, &length); /* scanned */
    if (is_text(line.text[0]))
        return text_value(resp, line.text[0], length);
    value.type = length < 0 ? HF__RESP_NULL : HF__RESP_LIST;
    if (length > 0)
        value.count = (uint32_t)(is_map(line.text[0]) ? 2 * length : length);
    return value;
}

void hf__resp_skip(struct hf__resp *resp, const struct hf__resp_value *value)
{
    uint64_t left = value->type == HF__RESP_LIST ? value->count : 0;

    while (left > 0) {
        bool attribute = false;
        struct hf__resp_value inner = walk(resp, &attribute);

        left -= !attribute;
        if (inner.type == HF__RESP_LIST)
            left += inner.count;
        else if (inner.type == HF__RESP_END)
            return;
    }
}

struct hf__resp_value hf__resp_next(struct hf__resp *resp)
{
    bool attribute = false;
    struct hf__resp_value value = walk(resp, &attribute);

    while (attribute) {
        hf__resp_skip(resp, &value);
        attribute = false;
        value = walk(resp, &attribute);
    }
    return value;
}

int64_t hf__resp_number(const struct hf__resp_value *value, int64_t wrong)
{
    int64_t number;

    if (value->type == HF__RESP_NUMBER)
        return value->number;
    if (value->type == HF__RESP_TEXT &&
        parse_number(value->text, value->len, &number))
        return number;
    return wrong;
}

bool hf__resp_is(const struct hf__resp_value *value, const char *text)
{
    return value->type == HF__RESP_TEXT && value->len == strlen(text) &&
           memcmp(value->text, text, value->len) == 0;
}

/* ---- commands ---------------------------------------------------------- */

enum { LINE = 24 }; /* a letter, a number, the end of the line */

static char *put_end(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_line(char *to, char letter, uint64_t number)
{
    char digits[LINE];
    size_t n = 0;

    *to++ = letter;
    if (HF_LIKELY(number < 100)) {
        *to = (char)('0' + number / 10);
        to += number > 9;
        *to++ = (char)('0' + number % 10);
        return put_end(to);
    }
    for (; number > 9; number /= 10)
        digits[n++] = (char)('0' + number % 10);
    *to++ = (char)('0' + number);
    while (n > 0)
        *to++ = digits[--n];
    return put_end(to);
}

static void add_line(struct hf__buf *buf, char letter, uint64_t number)
{
    char *to = hf__buf_room(buf, LINE);

    if (to)
        hf__buf_filled(buf, put_line(to, letter, number));
}

void hf__resp_head(struct hf__buf *buf, uint32_t arguments)
{
    add_line(buf, '*', arguments);
}

void hf__resp_arg_begin(struct hf__buf *buf, size_t len)
{
    add_line(buf, '$', len);
}

void hf__resp_arg_end(struct hf__buf *buf)
{
    hf__buf_append(buf, "\r\n", 2);
}

void hf__resp_arg(struct hf__buf *buf, const void *bytes, size_t len)
{
    char *to = hf__buf_room(buf, LINE + len + 2);

    if (!to)
        return;
    to = put_line(to, '$', len);
    if (len > 0)
        memcpy(to, bytes, len);
    hf__buf_filled(buf, put_end(to + len));
}

void hf__resp_arg_text(struct hf__buf *buf, const char *text)
{
    hf__resp_arg(buf, text, strlen(text));
}

void hf__resp_arg_number(struct hf__buf *buf, int64_t number)
{
    char room[1 + HF_DIGITS];
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = hf__text_number(size, room + 1);

    if (number < 0)
        *--at = '-';
    hf__resp_arg(buf, at, (size_t)(room + HF_DIGITS - at));
}
