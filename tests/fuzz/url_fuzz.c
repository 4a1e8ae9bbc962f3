/* SPDX-License-Identifier: MIT */
/* url_fuzz.c - URLs: what parses is whole, and its secrets are not shown. */
#include "config/url.h"

#include "fuzz.h"

/* The shown text parses again, to the same hosts and path. */
static void check_shown(const struct hf__url *url)
{
    struct hf__url *again = NULL;

    CHECK(hf__url_parse(url->redacted, &again, NULL) == 0);
    CHECK(strcmp(again->redacted, url->redacted) == 0);
    CHECK(strcmp(again->scheme, url->scheme) == 0);
    CHECK(strcmp(again->path, url->path) == 0);
    CHECK(again->n_hosts == url->n_hosts);
    CHECK(!url->password || strcmp(again->password, "***") == 0);
    hf__url_free(again);
}

static void check_parts(const struct hf__url *url)
{
    CHECK(url->scheme[0] && url->path && url->redacted);
    CHECK(url->n_hosts <= HF__URL_HOSTS);
    CHECK(url->n_wrappers <= HF__URL_WRAPPERS);
    CHECK(url->path[0] == '\0' || url->path[0] == '/');
    for (size_t i = 0; i < url->n_hosts; i++) {
        CHECK(url->hosts[i].host[0]);
        CHECK(url->hosts[i].port >= 0 && url->hosts[i].port <= 65535);
    }
    for (const struct hf__url_pair *p = url->query; p; p = p->next)
        CHECK(p->key[0] && p->value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct hf__url *url = NULL;
    hf_error err = {0};
    int rc = hf__url_parse(text, &url, &err);

    if (rc == 0) {
        check_parts(url);
        check_shown(url);
    } else {
        CHECK(rc == HF_ECONFIG && err.code == rc && err.text[0]);
        CHECK(!url);
    }
    hf__url_free(url);
    free(text);
    return 0;
}
