/* SPDX-License-Identifier: MIT */
/*
 * local_directory_test.c - whose directory the store of the embedded engine may
 * be in, and who waits for whom to open it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

static int try_open(const char *url, hf_error *err)
{
    return side_connect(side_prepare(url), err);
}

TEST(directory, is_made_for_its_user_alone)
{
    const char *dir = side_path(tempdir_new(), "new");
    struct stat st;

    (void)side_new(dir);
    ASSERT_EQ(stat(dir, &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0700);
    ASSERT_EQ(stat(side_path(dir, "table"), &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0600);
}

TEST(directory, must_have_a_parent_and_an_absolute_path)
{
    hf_error err;

    ASSERT_RC(try_open("local:///nowhere/at/all", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "parent");
    ASSERT_RC(try_open("local://some/dir", &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "local:///dir");
    ASSERT_RC(try_open("local:///", &err), HF_ECONFIG, &err);
}

TEST(directory, behind_a_symbolic_link_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_EQ(mkdir(side_path(dir, "real"), 0700), 0);
    ASSERT_EQ(symlink(side_path(dir, "real"), side_path(dir, "link")), 0);
    ASSERT_RC(try_open(side_url(side_path(dir, "link")), &err), HF_ECONFIG,
              &err);
    ASSERT_HAS(err.text, "symbolic link");
}

TEST(directory, that_others_may_write_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_EQ(chmod(dir, 0777), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "chmod 0700");
    ASSERT_EQ(chmod(dir, 0770), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
}

TEST(directory, of_another_user_is_refused)
{
    const char *dir = tempdir_new();
    hf_error err;

    if (geteuid() != 0 || chown(dir, 65534, 65534) != 0) {
        test_not_tested("a directory of another user needs root");
        return;
    }
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "belongs to user 65534");
}

TEST(directory, of_a_group_is_shared_with_it)
{
    const char *dir = tempdir_new();
    struct stat st;

    ASSERT_EQ(chmod(dir, 02770), 0);
    (void)side_new(dir);
    ASSERT_EQ(stat(side_path(dir, "table"), &st), 0);
    ASSERT_EQ(st.st_mode & 07777, 0660);
    (void)side_new(dir);
}

TEST(directory, with_a_table_that_is_a_link_or_shared_or_open_is_refused)
{
    const char *dir = tempdir_new();
    char url[512];
    hf_error err;

    (void)snprintf(url, sizeof(url), "local://%s", dir);
    ASSERT_EQ(symlink("/etc/passwd", side_path(dir, "table")), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_EQ(unlink(side_path(dir, "table")), 0);
    (void)side_new(dir);
    ASSERT_EQ(link(side_path(dir, "table"), side_path(dir, "copy")), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_EQ(unlink(side_path(dir, "copy")), 0);
    ASSERT_EQ(chmod(side_path(dir, "table"), 0666), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "chmod 0600");
    ASSERT_EQ(chmod(side_path(dir, "table"), 0600), 0);
    ASSERT_EQ(unlink(side_path(dir, "table")), 0);
    ASSERT_EQ(mkfifo(side_path(dir, "table"), 0600), 0);
    ASSERT_RC(try_open(url, &err), HF_ECONFIG, &err);
}

static void hold_the_lock(struct proc *self, void *arg)
{
    struct hf__place place = {.fd = -1};
    int fd;

    (void)snprintf(place.path, sizeof(place.path), "%s", (const char *)arg);
    ASSERT_OK(hf__place_open(&place, NULL), NULL);
    ASSERT_OK(hf__place_lock(&place, &fd, NULL), NULL);
    proc_tell(self, "locked");
    (void)proc_hear(self);
}

static int looks;

static void count_look(_Atomic uint32_t *word, uint32_t value, uint32_t who,
                       int64_t until_ns)
{
    looks++;
    hf__world_real.park(word, value, who, until_ns);
}

TEST(directory, that_somebody_is_opening_is_waited_for_and_not_for_ever)
{
    static char dir[512];
    struct proc *child;
    hf_error err;

    looks = 0;
    side_world()->park = count_look;

    (void)snprintf(dir, sizeof(dir), "%s", tempdir_new());
    child = proc_start(hold_the_lock, dir);
    proc_expect(child, "locked");
    ASSERT_RC(try_open(side_url(dir), &err), HF_EUNAVAILABLE, &err);
    ASSERT_GE(looks, 1);
    ASSERT_LE(looks, 10); /* a hundred of us would leave it no time */
    proc_kill(child);
    (void)side_new(dir);
}

TEST_FORKED(directory, is_by_default_the_runtime_directory)
{
    const char *dir = tempdir_new();
    struct side *a;

    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", dir, 1), 0);
    a = side_prepare("local:");
    ASSERT_OK(a->engine->ops->open(a->engine, NULL), NULL);
    ASSERT_STREQ(a->local->place.path, side_path(dir, "holdfast"));
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", "/nowhere", 1), 0);
    a = side_prepare("local:");
    ASSERT_OK(a->engine->ops->open(a->engine, NULL), NULL);
    if (geteuid() == 0)
        ASSERT_STREQ(a->local->place.path, "/run/holdfast");
}

TEST(directory, on_a_network_is_known)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY);

    ASSERT_NULL(hf__place_network(fd));
    ASSERT_EQ(close(fd), 0);
    ASSERT_NULL(hf__place_network(-1));
}

TEST(doctor, finds_nothing_wrong_with_a_good_store)
{
    struct side *a = side_new(tempdir_new());
    struct rows rows;

    (void)side_take(a, "jobs");
    ASSERT_OK(side_doctor(a, &rows), NULL);
    ASSERT_GE(rows.findings, 5);
    for (uint32_t i = 0; i < rows.findings; i++)
        ASSERT_EQ(rows.found[i][0], '0');
}

/* ---- other users, other clocks ----------------------------------------- */

/* In a forked test: go on as nobody, with a home of his own. */
static const char *become_nobody(void)
{
    const char *home = tempdir_new();

    ASSERT_EQ(chmod(home, 0755), 0);
    ASSERT_EQ(mkdir(side_path(home, "own"), 0700), 0);
    ASSERT_EQ(chown(side_path(home, "own"), 65534, 65534), 0);
    ASSERT_EQ(setgid(65534), 0);
    ASSERT_EQ(setuid(65534), 0);
    ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
    ASSERT_EQ(unsetenv("XDG_STATE_HOME"), 0);
    ASSERT_EQ(setenv("HOME", side_path(home, "own"), 1), 0);
    return side_path(home, "own");
}

TEST_FORKED(directory, of_a_user_without_runtime_directory_is_in_tmp)
{
    const char *home;
    struct side *a;
    hf_error err;

    if (geteuid() != 0) {
        test_not_tested("another user needs root");
        return;
    }
    home = become_nobody();
    a = side_prepare("local:");
    ASSERT_OK(side_connect(a, &err), &err);
    ASSERT_STREQ(a->local->place.path, "/tmp/holdfast-65534");
    ASSERT_STREQ(a->local->place.state_path,
                 side_path(home, ".local/state/holdfast"));
    (void)side_take(a, "jobs");
    ASSERT_GT(hf__mark_read(&a->local->store.mark), 0);
    ASSERT_EQ(setenv("XDG_STATE_HOME", home, 1), 0);
    a = side_prepare("local:");
    ASSERT_OK(side_connect(a, &err), &err);
    ASSERT_STREQ(a->local->place.state_path, side_path(home, "holdfast"));
    tempdir_remove("/tmp/holdfast-65534");
}

TEST_FORKED(directory, that_we_may_not_write_is_told_as_such)
{
    const char *dir = tempdir_new();
    hf_error err;

    if (geteuid() != 0) {
        test_not_tested("another user needs root");
        return;
    }
    ASSERT_EQ(chmod(dir, 0755), 0);
    (void)become_nobody();
    ASSERT_RC(try_open(side_url(dir), &err), HF_EAUTH, &err);
    ASSERT_RC(try_open(side_url(side_path(dir, "new")), &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, "that you may write");
}

TEST(directory, takes_no_host_no_user_and_no_lock_that_is_a_link)
{
    const char *dir = tempdir_new();
    hf_error err;

    ASSERT_RC(try_open("local://me@here/tmp/x", &err), HF_ECONFIG, &err);
    ASSERT_EQ(symlink("/etc/passwd", side_path(dir, "lock")), 0);
    ASSERT_RC(try_open(side_url(dir), &err), HF_ECONFIG, &err);
}
