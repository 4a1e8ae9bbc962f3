/* SPDX-License-Identifier: MIT */
/*
 * mysql_version.c URL - nobody waits; who was too late begins again.
 *
 * Two sell one piece each of a stock of ten. The naive form reads, subtracts and
 * writes: the second writes over what the first has sold. With a version the
 * second is refused, and reads again.
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

#include "mysql_plain.h"

/* What a seller saw when it looked. */
struct seen {
    uint64_t version;
    long long stock;
};

static long long naive(MYSQL *shop)
{
    long long one = plain_do(shop, "SELECT stock FROM item");
    long long two = plain_do(shop, "SELECT stock FROM item");

    plain_do(shop, "UPDATE item SET stock=%lld", one - 1);
    plain_do(shop, "UPDATE item SET stock=%lld", two - 1);
    return plain_do(shop, "SELECT stock FROM item");
}

/* The version first: data that are newer than it are refused later. */
static struct seen look(hf_client *client, MYSQL *shop)
{
    struct seen seen;
    hf_error err;

    if (hf_version_read(client, "item", &seen.version, &err) != 0) {
        fprintf(stderr, "mysql_version: %s\n", err.text);
        exit(2);
    }
    seen.stock = plain_do(shop, "SELECT stock FROM item");
    return seen;
}

/* One of all who have seen the same version may write. The row remembers the
 * version it was written under, so that nobody who was held up on the way writes
 * over somebody who came later. */
static int sell(hf_client *client, MYSQL *shop, struct seen seen)
{
    uint64_t version;
    hf_error err;
    int rc = hf_version_commit(client, "item", seen.version, &version, &err);

    if (rc != 0 && rc != HF_ECONFLICT) {
        fprintf(stderr, "mysql_version: %s\n", err.text);
        exit(2);
    }
    if (rc == 0)
        plain_do(shop,
                 "UPDATE item SET stock=%lld,version=%" PRIu64
                 " WHERE version<%" PRIu64,
                 seen.stock - 1, version, version);
    return rc;
}

int main(int argc, char **argv)
{
    MYSQL *shop = plain_open(argc > 1 ? argv[1] : "");
    hf_client *client;
    struct seen one;
    struct seen two;
    long long lost;
    long long kept;
    int late;
    hf_error err;

    if (hf_open(argv[1], NULL, &client, &err) != 0) {
        fprintf(stderr, "mysql_version: %s\n", err.text);
        return 2;
    }
    plain_do(shop, "CREATE OR REPLACE TABLE item(stock INT,version BIGINT "
                   "UNSIGNED DEFAULT 0)");
    plain_do(shop, "INSERT INTO item(stock) VALUES(10)");
    lost = naive(shop);
    printf("naive: two were sold, and %lld of 10 are left\n", lost);

    plain_do(shop, "UPDATE item SET stock=10");
    one = look(client, shop);
    two = look(client, shop);
    sell(client, shop, one);
    late = sell(client, shop, two);
    if (late == HF_ECONFLICT)
        sell(client, shop, look(client, shop));
    kept = plain_do(shop, "SELECT stock FROM item");
    printf("holdfast: the second was %s, and %lld of 10 are left\n",
           late == HF_ECONFLICT ? "refused and began again" : "not refused",
           kept);

    plain_do(shop, "DROP TABLE item");
    mysql_close(shop);
    hf_close(client);
    return lost == 9 && kept == 8 && late == HF_ECONFLICT ? 0 : 1;
}
