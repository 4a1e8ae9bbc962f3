/* SPDX-License-Identifier: MIT */
/*
 * wire.c - the network of a chaos run: a proxy (tests/lib/proxy.h) for each
 * client and each server.
 *
 *     chaos_wire CLIENTS PORT…
 *
 * writes a line with the proxies' ports for each client, then takes orders:
 * "CLIENT SERVER WORD [NUMBER]", where SERVER -1 is all of them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy.h"

enum { CLIENTS_MAX = 16, SERVERS_MAX = 8 };

static struct proxy *proxies[CLIENTS_MAX][SERVERS_MAX];

static void obey(struct proxy *proxy, const char *word, long number)
{
    bool on = number != 0;

    if (strcmp(word, "pass") == 0)
        proxy_pass(proxy);
    else if (strcmp(word, "delay") == 0)
        proxy_delay(proxy, number);
    else if (strcmp(word, "slice") == 0)
        proxy_slice(proxy, (size_t)number);
    else if (strcmp(word, "to_server") == 0)
        proxy_hold(proxy, PROXY_TO_SERVER, on);
    else if (strcmp(word, "to_client") == 0)
        proxy_hold(proxy, PROXY_TO_CLIENT, on);
    else if (strcmp(word, "lose_ends") == 0)
        proxy_lose_ends(proxy, on);
    else if (strcmp(word, "refuse") == 0)
        proxy_refuse(proxy, on);
    else if (strcmp(word, "reset") == 0)
        proxy_reset(proxy);
    else if (strcmp(word, "cut_reply") == 0)
        proxy_cut_after(proxy, PROXY_TO_CLIENT, (size_t)number);
    else
        (void)fprintf(stderr, "no such order: %s\n", word);
}

int main(int argc, char **argv)
{
    int clients = argc > 2 ? atoi(argv[1]) : 0;
    int servers = argc - 2;
    char line[128];

    if (clients < 1 || clients > CLIENTS_MAX || servers > SERVERS_MAX)
        return 64;
    (void)signal(SIGPIPE, SIG_IGN);
    for (int c = 0; c < clients; c++) {
        for (int s = 0; s < servers; s++) {
            proxies[c][s] = proxy_start(atoi(argv[2 + s]));
            (void)printf("%d ", proxy_port(proxies[c][s]));
        }
        (void)printf("\n");
    }
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        int client, server;
        char word[32];
        long number = 0;

        if (sscanf(line, "%d %d %31s %ld", &client, &server, word, &number) < 3)
            continue;
        for (int s = 0; s < servers; s++)
            if (server < 0 || s == server)
                obey(proxies[client % clients][s], word, number);
    }
    return 0;
}
