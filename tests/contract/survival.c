/* SPDX-License-Identifier: MIT */
/*
 * survival.c - what of a hold, a request, an owner and the lock survives: the
 * table of libholdfast(3), one test for each cell that others do not have.
 *
 * fork and close: life.c. The death of a process: death.c. References: hold.c.
 * hf_cancel(): wait.c.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"

struct scene {
    hf_client *client;
    const char *name;
    hf_hold *hold;
    hf_request *request;
    struct event done;
    int rc;
};

static void in_a_thread(void *(*run)(void *), struct scene *scene)
{
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, run, scene), 0);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
}

/* ---- the end of a thread ------------------------------------------------- */

static void *acquire_and_exit(void *arg)
{
    struct scene *scene = arg;

    scene->hold = contract_acquire(scene->client, scene->name);
    return NULL;
}

static void *try_and_exit(void *arg)
{
    struct scene *scene = arg;
    hf_hold *hold;

    scene->rc = hf_acquire(scene->client, scene->name, WITHIN(0), &hold, NULL);
    return NULL;
}

static void *start_and_exit(void *arg)
{
    struct scene *scene = arg;
    hf_error err;

    ASSERT_OK(hf_acquire_start(scene->client, scene->name, NULL, NULL, NULL,
                               &scene->request, &err),
              &err);
    return NULL;
}

/* Thread ids are used again; serial numbers are not. */
TEST(survival, a_hold_outlives_its_thread_and_no_later_thread_owns_it)
{
    struct scene scene = {.client = contract_open(NULL),
                          .name = contract_name("jobs")};

    in_a_thread(acquire_and_exit, &scene);
    ASSERT_EQ(hf_check(scene.hold), HF_HELD);
    for (int i = 0; i < 3; i++) {
        in_a_thread(try_and_exit, &scene);
        ASSERT_EQ(scene.rc, HF_EBUSY);
    }
    client_release(scene.hold);
}

TEST(survival, a_request_outlives_its_thread)
{
    struct scene scene = {.client = contract_open(NULL),
                          .name = contract_name("jobs")};
    hf_hold *hold = contract_acquire(scene.client, scene.name);
    hf_error err;

    in_a_thread(start_and_exit, &scene);
    ASSERT_EQ(hf_request_pending(scene.request), 1);
    client_release(hold);
    ASSERT_OK(
        hf_request_wait(scene.request, EVENT_PATIENCE_MS, &scene.hold, &err),
        &err);
    hf_request_free(scene.request);
    client_release(scene.hold);
}

/* ---- pthread_cancel ------------------------------------------------------ */

static void *acquire_and_pause(void *arg)
{
    struct scene *scene = arg;

    scene->hold = contract_acquire(scene->client, scene->name);
    event_tell(&scene->done, 0);
    for (;;)
        (void)pause();
    return NULL;
}

TEST(survival, a_cancelled_thread_finishes_the_call_it_is_in)
{
    struct scene scene = {.client = contract_open(NULL),
                          .name = contract_name("jobs"),
                          .done = EVENT_INIT};
    hf_hold *hold = contract_acquire(scene.client, scene.name);
    pthread_t thread;
    void *end;

    ASSERT_EQ(pthread_create(&thread, NULL, acquire_and_pause, &scene), 0);
    EVENTUALLY(contract_metric(scene.client, "holdfast_waiting{") == 1);
    ASSERT_EQ(pthread_cancel(thread), 0);
    ASSERT_TRUE(event_is_silent(&scene.done, 1, 20));
    client_release(hold);
    ASSERT_EQ(pthread_join(thread, &end), 0);
    ASSERT_TRUE(end == PTHREAD_CANCELED);
    ASSERT_EQ(event_count(&scene.done), 1);
    ASSERT_EQ(hf_check(scene.hold), HF_HELD);
    client_release(scene.hold);
}

/* ---- fork ----------------------------------------------------------------- */

static int child_has_nothing(const struct scene *scene)
{
    hf_hold *got;

    if (hf_hold_owner(scene->hold) != 0)
        return 1;
    if (hf_owner_new() == 0)
        return 2;
    if (hf_hold_give(scene->hold, hf_owner_new(), NULL) != HF_EFORK)
        return 3;
    if (hf_request_wait(scene->request, 0, &got, NULL) != HF_EFORK)
        return 4;
    if (hf_request_pending(scene->request) != 0)
        return 5;
    hf_cancel(scene->request);
    hf_request_free(scene->request);
    return 0;
}

TEST(survival, a_forked_child_has_no_request_and_no_owner)
{
    struct scene scene = {.client = contract_open(NULL),
                          .name = contract_name("jobs")};
    hf_hold *got;
    hf_error err;
    int status;
    pid_t pid;

    scene.hold = contract_acquire(scene.client, scene.name);
    in_a_thread(start_and_exit, &scene);
    (void)fflush(stdout);
    pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0)
        _exit(child_has_nothing(&scene));
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(hf_request_pending(scene.request), 1);
    client_release(scene.hold);
    ASSERT_OK(hf_request_wait(scene.request, EVENT_PATIENCE_MS, &got, &err),
              &err);
    hf_request_free(scene.request);
    client_release(got);
}

/* ---- exec ----------------------------------------------------------------- */

static void hold_and_exec(struct proc *self, void *arg)
{
    static const char *const cat[] = {"cat", NULL};
    const struct scene *scene = arg;
    hf_client *client = contract_open("ttl=1500ms&session_timeout=1500ms");

    (void)contract_acquire(client, scene->name);
    proc_tell(self, "holds");
    (void)proc_hear(self);
    proc_become(self, cat);
}

/* At once where the engine notices, else when its lease has ended. */
TEST(survival, a_lock_does_not_survive_exec)
{
    struct scene scene = {.name = contract_name("jobs")};
    struct proc *proc;
    hf_hold *hold;

    (void)contract_url(NULL); /* one store for both */
    proc = proc_start(hold_and_exec, &scene);
    (void)proc_expect(proc, "holds");
    scene.client = contract_open(NULL);
    ASSERT_EQ(contract_try(scene.client, scene.name, HF_EXCLUSIVE, 0),
              HF_EBUSY);
    proc_say(proc, "become another program");
    hold = contract_acquire(scene.client, scene.name);
    proc_say(proc, "still here"); /* cat says it again */
    (void)proc_expect(proc, "still here");
    client_release(hold);
}

/* ---- close ---------------------------------------------------------------- */

TEST(survival, an_owner_outlives_the_client)
{
    struct rivals at = contract_rivals("jobs");
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.owner_id = hf_owner_new();
    ASSERT_OK(hf_acquire(at.client, at.name, &opts, &hold, &err), &err);
    contract_close(at.client);
    ASSERT_EQ(hf_hold_owner(hold), 0);
    ASSERT_RC(hf_hold_give(hold, opts.owner_id, &err), HF_ELOST, &err);
    (void)hf_release(hold, NULL); /* only the handle is left */
    opts.wait_ms = EVENT_PATIENCE_MS;
    ASSERT_OK(hf_acquire(at.rival, at.name, &opts, &hold, &err), &err);
    ASSERT_EQ(hf_hold_owner(hold), opts.owner_id);
    client_release(hold);
}
