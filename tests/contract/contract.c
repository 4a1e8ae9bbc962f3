/* SPDX-License-Identifier: MIT */
/* contract.c - what the tests of the contract share; and main(). */
#include "contract.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tempdir.h"

enum { CLIENTS_MAX = 64 };

static const char *base_url = "local:";
static bool slots_only;
static uint64_t capabilities;
static char run_id[32];
static const char *directory; /* of the running test */
static hf_client *clients[CLIENTS_MAX];
static int n_clients;

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static void forget_directory(void *arg)
{
    (void)arg;
    directory = NULL;
}

static const char *kept_text(const char *wrapper, const char *query)
{
    if (ends_in(base_url, "local:") && !directory) {
        test_defer(forget_directory, NULL);
        directory = tempdir_new();
    }
    return test_text("%s%s%s%s%s%s%s", wrapper, *wrapper ? "+" : "", base_url,
                     directory ? "//" : "", directory ? directory : "",
                     query ? strchr(base_url, '?') ? "&" : "?" : "",
                     query ? query : "");
}

const char *contract_url(const char *query)
{
    return kept_text("", query);
}

const char *contract_wrapped_url(const char *wrapper, const char *query)
{
    return kept_text(wrapper, query);
}

static void close_client(void *arg)
{
    hf_client **slot = arg;

    hf_close(*slot);
    *slot = NULL;
    n_clients--;
}

/* A place that contract_close() has emptied, or a new one. */
static hf_client **free_place(void)
{
    for (int i = 0; i < n_clients; i++)
        if (!clients[i])
            return &clients[i];
    if (n_clients == CLIENTS_MAX)
        FAIL("more than %d clients", CLIENTS_MAX);
    test_defer(close_client, &clients[n_clients]);
    return &clients[n_clients++];
}

hf_client *contract_open_url(const char *url)
{
    hf_client *client;
    hf_error err;
    int rc = hf_open(url, NULL, &client, &err);

    if (rc != 0)
        FAIL("open %s: %s: %s", url, hf_errname(rc), err.text);
    *free_place() = client;
    return client;
}

hf_client *contract_open(const char *query)
{
    return contract_open_url(contract_url(query));
}

void contract_close(hf_client *client)
{
    for (int i = 0; i < n_clients; i++)
        if (clients[i] == client)
            clients[i] = NULL;
    hf_close(client);
}

const char *contract_name(const char *base)
{
    return test_text("%s.%s", base, run_id);
}

struct rivals contract_rivals(const char *base)
{
    return (struct rivals){.client = contract_open(NULL),
                           .rival = contract_open(NULL),
                           .name = contract_name(base)};
}

bool contract_can(uint64_t wanted)
{
    return (capabilities & wanted) == wanted;
}

const char *contract_lacks(uint64_t wanted)
{
    uint64_t missing = wanted & ~capabilities;

    return hf_capability_name(missing & (~missing + 1));
}

const hf_opts *contract_opts(const hf_opts *opts, hf_opts *copy)
{
    static const hf_opts plain = {.size = sizeof(hf_opts),
                                  .wait_ms = HF_CONFIGURED};

    if (!slots_only ||
        (opts && (opts->mode != HF_EXCLUSIVE || opts->size != sizeof(hf_opts))))
        return opts;
    *copy = opts ? *opts : plain;
    copy->mode = HF_SLOT;
    copy->slots = 1;
    return copy;
}

hf_hold *contract_acquire_mode(hf_client *client, const char *name, int mode,
                               int slots)
{
    return client_acquire_with(
        client, name, OPTS(EVENT_PATIENCE_MS, .mode = mode, .slots = slots));
}

hf_hold *contract_acquire(hf_client *client, const char *name)
{
    return contract_acquire_mode(client, name, HF_EXCLUSIVE, 0);
}

int contract_try(hf_client *client, const char *name, int mode, int slots)
{
    return client_try_with(client, name,
                           CONTRACT_OPTS(OPTS(0, .mode = mode, .slots = slots,
                                              .owner = "somebody else")),
                           NULL);
}

struct page {
    char *text;
    size_t len;
};

static void add_text(const char *text, size_t len, void *ctx)
{
    struct page *page = ctx;

    page->text = realloc(page->text, page->len + len + 1);
    if (!page->text)
        FAIL("out of memory");
    memcpy(page->text + page->len, text, len);
    page->len += len;
    page->text[page->len] = '\0';
}

static char *read_metrics(hf_client *client)
{
    struct page page = {NULL, 0};

    ASSERT_EQ(hf_metrics_write(client, add_text, &page), 0);
    ASSERT_NOT_NULL(page.text);
    return page.text;
}

const char *contract_metrics(hf_client *client)
{
    char *text = read_metrics(client);

    test_defer(free, text);
    return text;
}

int64_t contract_metric(hf_client *client, const char *prefix)
{
    char *text = read_metrics(client);
    char *rest = text;
    int64_t value = -1;

    for (char *line = strsep(&rest, "\n"); line && value < 0;
         line = strsep(&rest, "\n"))
        if (strncmp(line, prefix, strlen(prefix)) == 0)
            value = strtoll(strrchr(line, ' ') + 1, NULL, 10);
    free(text);
    return value;
}

/* ---- main --------------------------------------------------------------- */

static int probe(void)
{
    char path[] = "/tmp/holdfast-probe-XXXXXX";
    bool local = ends_in(base_url, "local:");
    hf_client *client;
    char url[512];
    hf_error err;
    int rc;

    if (local && !mkdtemp(path))
        return 1;
    (void)snprintf(url, sizeof(url), "%s%s%s", base_url, local ? "//" : "",
                   local ? path : "");
    rc = hf_open(url, NULL, &client, &err);
    if (rc == 0) {
        hf_hold *hold;

        capabilities = hf_capabilities(client);
        /* Without the contract's own word for it. */
        rc = (hf_acquire)(client, run_id, NULL, &hold, &err);
        slots_only = rc == HF_EUNSUPPORTED;
        rc = rc == 0 ? hf_release(hold, &err) : slots_only ? 0 : rc;
        hf_close(client);
    } else {
        printf("# %s: %s: %s\n", base_url, hf_errname(rc), err.text);
    }
    if (local)
        tempdir_remove(path);
    return rc != 0;
}

static void print_capabilities(void)
{
    printf("# %s promises:", base_url);
    for (int bit = 0; bit < 64; bit++)
        if (capabilities & (UINT64_C(1) << bit))
            printf(" %s", hf_capability_name(UINT64_C(1) << bit));
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *variable = getenv("HOLDFAST_TEST_URL");

    if (variable)
        base_url = variable;
    if (argc > 2 && strcmp(argv[1], "--url") == 0) {
        base_url = argv[2];
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    (void)snprintf(run_id, sizeof(run_id), "%lx%x", (unsigned long)time(NULL),
                   (unsigned)getpid());
    if (argc > 1 && strcmp(argv[1], "-l") == 0)
        return test_main(argc, argv);
    if (probe() != 0)
        return 1;
    print_capabilities();
    return test_main(argc, argv);
}
