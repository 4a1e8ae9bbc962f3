/* SPDX-License-Identifier: MIT */
/*
 * elect.c - one leader among all who run this; the next takes over.
 *
 * Runs until interrupted. Start several, and kill the leader.
 */
#include <holdfast.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static void on_change(hf_hold *hold, int state, void *ctx)
{
    (void)ctx;
    switch (state) {
    case HF_HELD:
        printf("leading, term %" PRIu64 "\n", hf_token(hold));
        break;
    case HF_JEOPARDY:
        printf("still leading, but the engine is silent\n");
        break;
    default:
        printf("not leading any more\n");
        break;
    }
    fflush(stdout);
}

int main(void)
{
    hf_election *election;
    hf_client *client;
    hf_error err;
    sigset_t signals;
    int number;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    if (hf_open(NULL, NULL, &client, &err) != 0 ||
        hf_elect_start(client, "leader", NULL, on_change, NULL, &election,
                       &err) != 0) {
        fprintf(stderr, "elect: %s\n", err.text);
        return 1;
    }
    sigwait(&signals, &number);

    if (hf_elect_stop(election, &err) != 0)
        fprintf(stderr, "elect: %s\n", err.text);
    hf_close(client);
    return 0;
}
