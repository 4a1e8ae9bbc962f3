/* SPDX-License-Identifier: MIT */
/* look.c - looking at locks, breaking them; versions; elections. */
#include <unistd.h>

#include "contract.h"

struct row {
    hf_lock_info info;
    char name[300];
    char owner[200];
    char note[300];
    int n;
};

static int keep_row(const hf_lock_info *info, void *ctx)
{
    struct row *rows = ctx;
    struct row *row = &rows[rows[0].n];

    ASSERT_EQ(info->size, sizeof(hf_lock_info));
    row->info = *info;
    (void)snprintf(row->name, sizeof(row->name), "%s", info->name);
    (void)snprintf(row->owner, sizeof(row->owner), "%s", info->owner);
    (void)snprintf(row->note, sizeof(row->note), "%s", info->note);
    rows[0].n++;
    return rows[0].n == 8 ? 77 : 0;
}

TEST(look, a_list_shows_holder_and_waiters)
{
    struct rivals at = contract_rivals("jobs");
    struct row rows[8] = {{.n = 0}};
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_LIST);
    opts.owner = "alice";
    opts.note = "nightly “vacuum”";
    ASSERT_OK(hf_acquire(at.client, at.name, &opts, &hold, &err), &err);
    opts.owner = "bob";
    opts.note = NULL;
    ASSERT_OK(
        hf_acquire_start(at.rival, at.name, &opts, NULL, NULL, &request, &err),
        &err);
    EVENTUALLY(client_count(at.client, at.name, HF_WAITER) == 1);
    ASSERT_EQ(hf_show(at.client, at.name, keep_row, rows, &err), 0);

    ASSERT_EQ(rows[0].n, 2);
    ASSERT_EQ(rows[0].info.role, HF_HOLDER);
    ASSERT_STREQ(rows[0].name, at.name);
    ASSERT_HAS(rows[0].owner, "alice");
    ASSERT_STREQ(rows[0].note, "nightly “vacuum”");
    ASSERT_EQ(rows[0].info.mode, HF_EXCLUSIVE);
    ASSERT_EQ(rows[0].info.token, hf_token(hold));
    ASSERT_TRUE(rows[0].info.pid == 0 || rows[0].info.pid == getpid());
    ASSERT_TRUE(rows[0].info.since_ms >= -1 && rows[0].info.since_ms < 20000);
    ASSERT_NE(rows[0].info.alive, 0);
    if (hf_capabilities(at.client) & HF_CAP_LEASED)
        ASSERT_TRUE(rows[0].info.alive == 1 || rows[0].info.lease_ms >= 0);
    ASSERT_TRUE(rows[0].info.ttl_ms == 0 ||
                rows[0].info.ttl_ms == hf_ttl_ms(hold));
    ASSERT_EQ(rows[1].info.role, HF_WAITER);
    ASSERT_HAS(rows[1].owner, "bob");
    ASSERT_EQ(rows[1].info.place, 1);
    hf_cancel(request);
    hf_request_free(request);
    client_release(hold);
}

TEST(look, a_list_has_a_prefix_and_a_show_a_name)
{
    hf_client *client = contract_open(NULL);
    const char *one = contract_name("list/one");
    const char *two = contract_name("list/two");
    hf_hold *holds[2];
    struct row rows[8] = {{.n = 0}};
    hf_error err;

    NEEDS(HF_CAP_LIST);
    holds[0] = contract_acquire(client, one);
    holds[1] = contract_acquire(client, two);
    ASSERT_OK(hf_list(client, "list/", keep_row, rows, &err), &err);
    ASSERT_EQ(rows[0].n, 2);
    ASSERT_STREQ(rows[0].name, one);
    ASSERT_STREQ(rows[1].name, two);
    rows[0].n = 0;
    ASSERT_OK(hf_list(client, "list/t", keep_row, rows, &err), &err);
    ASSERT_EQ(rows[0].n, 1);
    rows[0].n = 0;
    ASSERT_OK(hf_show(client, "list/", keep_row, rows, &err), &err);
    ASSERT_EQ(rows[0].n, 0);
    client_release(holds[0]);
    client_release(holds[1]);
}

static int stop_at_once(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 42;
}

TEST(look, a_list_stops_when_it_is_told_to)
{
    hf_client *client = contract_open(NULL);
    hf_hold *holds[2];
    hf_error err;
    int calls = 0;

    NEEDS(HF_CAP_LIST);
    holds[0] = contract_acquire(client, contract_name("a"));
    holds[1] = contract_acquire(client, contract_name("b"));
    ASSERT_EQ(hf_list(client, NULL, stop_at_once, &calls, &err), 42);
    ASSERT_EQ(calls, 1);
    ASSERT_EQ(hf_list(client, NULL, NULL, NULL, &err), HF_EINVAL);
    client_release(holds[0]);
    client_release(holds[1]);
}

TEST(look, a_token_is_current_or_not)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold;
    uint64_t token;

    NEEDS(HF_CAP_CHECK_TOKEN);
    ASSERT_EQ(hf_check_token(client, name, 1, NULL), HF_ENOTFOUND);
    hold = contract_acquire(client, name);
    token = hf_token(hold);
    ASSERT_EQ(hf_check_token(client, name, token, NULL), 0);
    ASSERT_EQ(hf_check_token(client, name, token + 1, NULL), HF_ECONFLICT);
    ASSERT_EQ(hf_check_token(client, name, token - 1, NULL), HF_ECONFLICT);
    client_release(hold);
    ASSERT_EQ(hf_check_token(client, name, token, NULL), HF_ENOTFOUND);
}

TEST(look, what_cannot_be_asked_says_so)
{
    hf_client *client = contract_open(NULL);
    uint64_t version;

    if (!contract_can(HF_CAP_CHECK_TOKEN))
        ASSERT_EQ(hf_check_token(client, "a", 1, NULL), HF_EUNSUPPORTED);
    if (!contract_can(HF_CAP_BREAK))
        ASSERT_EQ(hf_break(client, "a", 1, NULL, NULL), HF_EUNSUPPORTED);
    if (!contract_can(HF_CAP_VERSIONS))
        ASSERT_EQ(hf_version_read(client, "a", &version, NULL),
                  HF_EUNSUPPORTED);
}

TEST(look, a_broken_lock_is_lost_and_free)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *hold;
    uint64_t token;

    NEEDS(HF_CAP_BREAK | HF_CAP_FENCED);
    ASSERT_EQ(hf_break(at.rival, at.name, 1, NULL, NULL), HF_ENOTFOUND);
    hold = contract_acquire(at.client, at.name);
    token = hf_token(hold);
    ASSERT_EQ(hf_break(at.rival, at.name, 0, NULL, NULL), HF_EINVAL);
    ASSERT_EQ(hf_break(at.rival, at.name, token + 1, NULL, NULL), HF_ECONFLICT);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(hf_break(at.rival, at.name, token, NULL, NULL), 0);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
    ASSERT_EQ(hf_verify(hold, NULL), HF_ELOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(look, the_release_of_a_broken_lock_spares_the_next_holder)
{
    struct rivals at = contract_rivals("jobs");
    hf_hold *broken;
    hf_hold *hold;

    NEEDS(HF_CAP_BREAK | HF_CAP_FENCED);
    broken = contract_acquire(at.client, at.name);
    ASSERT_EQ(hf_break(at.rival, at.name, hf_token(broken), NULL, NULL), 0);
    hold = contract_acquire(at.rival, at.name);
    ASSERT_EQ(hf_release(broken, NULL), HF_ELOST);
    ASSERT_EQ(hf_verify(hold, NULL), 0);
    client_release(hold);
}

/* ---- doctor, engines, metrics ------------------------------------------- */

static int count_findings(const hf_finding *finding, void *ctx)
{
    ASSERT_EQ(finding->size, sizeof(hf_finding));
    ASSERT_NOT_NULL(finding->check);
    ASSERT_NOT_NULL(finding->detail);
    ASSERT_NOT_NULL(finding->fix);
    ASSERT_TRUE(finding->status >= HF_FINDING_OK &&
                finding->status <= HF_FINDING_FAIL);
    ++*(int *)ctx;
    return 0;
}

TEST(look, the_doctor_finds_something)
{
    hf_client *client = contract_open(NULL);
    int findings = 0;
    hf_error err;
    int rc = hf_doctor(client, count_findings, &findings, &err);

    ASSERT_TRUE(rc == 0 || rc == HF_EUNSUPPORTED);
    ASSERT_TRUE(rc != 0 || findings > 0);
}

/* Is this the client's engine, and its URL's scheme one of the engine's? */
static int find_engine(const hf_engine_info *info, void *ctx)
{
    const char *url = hf_client_url(ctx);
    size_t len = strcspn(url, ":");
    char schemes[128];
    char scheme[32];

    if (strcmp(info->name, hf_engine_name(ctx)) != 0)
        return 0;
    while (memchr(url, '+', len) && strncmp(url, "redis+", 6) != 0) {
        len -= strcspn(url, "+") + 1;
        url += strcspn(url, "+") + 1;
    }
    (void)snprintf(schemes, sizeof(schemes), " %s ", info->schemes);
    (void)snprintf(scheme, sizeof(scheme), " %.*s ", (int)len, url);
    ASSERT_HAS(schemes, scheme);
    return 1;
}

TEST(look, the_engine_is_among_those_known)
{
    hf_client *client = contract_open(NULL);

    ASSERT_EQ(hf_engines(find_engine, client), 1);
    ASSERT_EQ(strlen(hf_client_id(client)), 32);
}

TEST(look, metrics_count_what_was_done)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("jobs");
    hf_hold *hold = contract_acquire(client, name);

    ASSERT_EQ(contract_try(client, name, HF_EXCLUSIVE, 0), HF_EBUSY);
    ASSERT_EQ(contract_metric(client, "holdfast_held{"), 1);
    client_release(hold);
    ASSERT_EQ(contract_metric(client, "holdfast_held{"), 0);
    ASSERT_EQ(contract_metric(client, "holdfast_releases_total{"), 1);
    ASSERT_EQ(contract_metric(client, "holdfast_wait_seconds_count{"), 1);
    ASSERT_HAS(contract_metrics(client), "result=\"busy\"} 1");
    ASSERT_EQ(hf_metrics_write(client, NULL, NULL), HF_EINVAL);
}

/* ---- versions ----------------------------------------------------------- */

TEST(version, grows_and_knows_a_conflict)
{
    struct rivals at = contract_rivals("page");
    uint64_t version = 99;
    uint64_t next = 0;
    hf_error err;

    NEEDS(HF_CAP_VERSIONS);
    ASSERT_OK(hf_version_read(at.client, at.name, &version, &err), &err);
    ASSERT_EQ(version, 0);
    ASSERT_OK(hf_version_commit(at.client, at.name, 0, &next, &err), &err);
    ASSERT_GT(next, 0);
    ASSERT_OK(hf_version_read(at.rival, at.name, &version, &err), &err);
    ASSERT_EQ(version, next);
    ASSERT_RC(hf_version_commit(at.rival, at.name, 0, &next, &err),
              HF_ECONFLICT, &err);
    ASSERT_EQ(next, version);
    ASSERT_OK(hf_version_commit(at.rival, at.name, version, &next, &err), &err);
    ASSERT_GT(next, version);
    ASSERT_EQ(hf_version_read(at.client, at.name, NULL, NULL), HF_EINVAL);
}

static void edit(struct proc *self, void *arg)
{
    struct contract_job *editor = arg;
    hf_client *client = contract_open_url(editor->url);
    int committed = 0;
    int conflicts = 0;

    while (committed < 50) {
        uint64_t version;
        int rc;

        ASSERT_OK(hf_version_read(client, editor->name, &version, NULL), NULL);
        rc = hf_version_commit(client, editor->name, version, &version, NULL);
        ASSERT_TRUE(rc == 0 || rc == HF_ECONFLICT);
        committed += rc == 0;
        conflicts += rc != 0;
    }
    proc_tell(self, "done, %d conflicts", conflicts);
    contract_close(client);
}

TEST(version, every_commit_of_many_processes_counts)
{
    struct contract_job editor = {contract_url(NULL), contract_name("page")};
    struct proc *procs[3];
    hf_client *client;
    uint64_t before = 0;

    NEEDS(HF_CAP_VERSIONS);
    for (int i = 0; i < 3; i++)
        procs[i] = proc_start(edit, &editor);
    for (int i = 0; i < 3; i++) {
        (void)proc_expect(procs[i], "done");
        proc_join(procs[i]);
    }
    client = contract_open(NULL);
    ASSERT_OK(hf_version_read(client, editor.name, &before, NULL), NULL);
    ASSERT_GE(before, 150);
}

/* ---- elections ---------------------------------------------------------- */

TEST(election, has_one_leader_and_then_the_next)
{
    struct event events[2] = {EVENT_INIT, EVENT_INIT};
    hf_client *clients[2] = {contract_open(NULL), contract_open(NULL)};
    const char *name = contract_name("leader");
    hf_election *elections[2];
    hf_error err;

    for (int i = 0; i < 2; i++)
        ASSERT_OK(hf_elect_start(clients[i], name, NULL, client_on_event,
                                 &events[i], &elections[i], &err),
                  &err);
    EVENTUALLY(event_count(&events[0]) + event_count(&events[1]) == 1);
    int leader = event_count(&events[0]) == 1 ? 0 : 1;

    ASSERT_EQ(events[leader].values[0], HF_HELD);
    ASSERT_EQ(hf_elect_check(elections[leader]), HF_HELD);
    ASSERT_EQ(hf_elect_check(elections[!leader]), HF_RELEASED);
    ASSERT_OK(hf_elect_stop(elections[leader], &err), &err);
    event_await(&events[!leader], 1, 5000);
    ASSERT_EQ(hf_elect_check(elections[!leader]), HF_HELD);
    ASSERT_OK(hf_elect_stop(elections[!leader], &err), &err);
    ASSERT_OK(hf_elect_stop(NULL, &err), &err);
    EVENTUALLY(contract_try(clients[0], name, HF_EXCLUSIVE, 0) == 0);
}

TEST(election, goes_on_after_a_loss)
{
    struct event events = EVENT_INIT;
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=hold:expire=50ms@1"));
    hf_election *election;
    hf_error err;

    ASSERT_OK(hf_elect_start(client, contract_name("leader"), NULL,
                             client_on_event, &events, &election, &err),
              &err);
    event_await(&events, 3, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_HELD);
    ASSERT_EQ(events.values[1], HF_LOST);
    ASSERT_EQ(events.values[2], HF_HELD);
    ASSERT_OK(hf_elect_stop(election, &err), &err);
}

TEST(election, a_candidate_that_stops_never_leads)
{
    struct event events = EVENT_INIT;
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("leader");
    hf_hold *hold = contract_acquire(contract_open(NULL), name);
    hf_election *election;
    hf_error err;

    ASSERT_OK(hf_elect_start(client, name, NULL, client_on_event, &events,
                             &election, &err),
              &err);
    ASSERT_OK(hf_elect_stop(election, &err), &err);
    client_release(hold);
    /* Its last request may still be on its way to the engine, and back. */
    EVENTUALLY(contract_try(client, name, HF_EXCLUSIVE, 0) == 0);
    ASSERT_EQ(event_count(&events), 0);
}

TEST(look, a_token_that_was_passed_on_inside_the_process_is_not_current)
{
    const char *name = contract_name("jobs");
    hf_client *client;
    hf_request *request;
    hf_hold *hold;
    uint64_t first;
    hf_error err;

    NEEDS(HF_CAP_CHECK_TOKEN);
    client = contract_open(NULL);
    hold = contract_acquire(client, name);
    first = hf_token(hold);
    ASSERT_OK(hf_acquire_start(client, name, NULL, NULL, NULL, &request, &err),
              &err);
    client_release(hold);
    ASSERT_OK(hf_request_wait(request, 10000, &hold, &err), &err);
    hf_request_free(request);
    ASSERT_GT(hf_token(hold), first);
    ASSERT_OK(hf_check_token(client, name, hf_token(hold), &err), &err);
    ASSERT_RC(hf_check_token(client, name, first, &err), HF_ECONFLICT, &err);
    client_release(hold);
}
