/* SPDX-License-Identifier: MIT */
/*
 * raw_etcd.c - what one member can do at most over its gateway, for
 * ./dev bench etcd.
 *
 *     raw_etcd pair SECONDS PORT
 *
 * A pair is a transaction that creates a key with a lease if it is not there
 * and reads the queue, and one that compares its revision and deletes it: what
 * a lock needs at least. libcurl's easy interface, blocking, one connection,
 * preformatted but for the revision.
 */
#include <curl/curl.h>

#include "raw.h"

static CURL *easy;
static char url[2][64];
static char answer[1 << 16];
static size_t answer_len;

static size_t keep(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)ctx;
    if (answer_len + size * n >= sizeof(answer))
        return 0;
    memcpy(answer + answer_len, bytes, size * n);
    answer_len += size * n;
    answer[answer_len] = '\0';
    return size * n;
}

static void post(const char *to, const char *body)
{
    answer_len = 0;
    curl_easy_setopt(easy, CURLOPT_URL, to);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    if (curl_easy_perform(easy) != CURLE_OK || !strstr(answer, "\"header\"")) {
        fprintf(stderr, "raw_etcd: %s: %s\n", to, answer);
        exit(1);
    }
}

static const char *text_after(const char *word)
{
    const char *at = strstr(answer, word);

    if (!at) {
        fprintf(stderr, "raw_etcd: no %s in %s\n", word, answer);
        exit(1);
    }
    return at + strlen(word);
}

static void pair(const char *lease)
{
    char body[1024];

    /* The key is "raw/1", the queue "raw/" to "raw0". */
    snprintf(body, sizeof(body),
             "{\"compare\":[{\"key\":\"cmF3LzE=\",\"target\":\"CREATE\","
             "\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{"
             "\"key\":\"cmF3LzE=\",\"value\":\"eA==\",\"lease\":\"%s\"}},"
             "{\"request_range\":{\"key\":\"cmF3Lw==\",\"range_end\":"
             "\"cmF3MA==\",\"sort_order\":\"DESCEND\",\"sort_target\":"
             "\"CREATE\",\"limit\":\"2\"}}]}",
             lease);
    post(url[1], body);
    snprintf(body, sizeof(body),
             "{\"compare\":[{\"key\":\"cmF3LzE=\",\"target\":\"CREATE\","
             "\"create_revision\":\"%llu\"}],\"success\":[{"
             "\"request_delete_range\":{\"key\":\"cmF3LzE=\"}}]}",
             strtoull(text_after("\"revision\":\""), NULL, 10));
    post(url[1], body);
    if (!strstr(answer, "\"succeeded\":true")) {
        fprintf(stderr, "raw_etcd: not deleted: %s\n", answer);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    struct samples *samples = samples_new();
    struct curl_slist *headers =
        curl_slist_append(NULL, "Content-Type: application/json");
    char lease[32] = "";
    uint64_t end;

    if (argc != 4 || strcmp(argv[1], "pair") != 0) {
        fprintf(stderr, "usage: raw_etcd pair SECONDS PORT\n");
        return 64;
    }
    easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    snprintf(url[0], sizeof(url[0]), "http://127.0.0.1:%s/v3/lease/grant",
             argv[3]);
    snprintf(url[1], sizeof(url[1]), "http://127.0.0.1:%s/v3/kv/txn", argv[3]);
    post(url[0], "{\"TTL\":\"60\"}");
    sscanf(text_after("\"ID\":\""), "%31[0-9]", lease);
    for (int i = 0; i < 20; i++)
        pair(lease);
    end = end_of(atof(argv[2]));
    for (uint64_t at = now_ns(); at < end;) {
        uint64_t before = at;

        pair(lease);
        at = now_ns();
        sample(samples, at - before);
    }
    print("pair", (double)samples->n / atof(argv[2]), samples);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return 0;
}
