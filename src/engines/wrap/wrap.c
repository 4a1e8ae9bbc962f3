/* SPDX-License-Identifier: MIT */
/*
 * wrap.c - what all engines around an engine share.
 *
 * A wrapper's table of calls is made when it is opened: its own table without
 * the optional calls that the inner engine lacks, so that the core sees the
 * inner engine's NULLs and makes no call that the inner engine does not have.
 *
 * Failure: we pass on the error of the inner engine's open(); close() accepts a
 * chain that was opened in part, as every engine's does.
 */
#include "engines/wrap/wrap.h"

/* Leave out of @ops what @inner does not have. */
static void narrow(struct hf__engine_ops *ops,
                   const struct hf__engine_ops *inner)
{
#define NARROW(slot)                                                           \
    if (!inner->slot)                                                          \
    ops->slot = NULL
    NARROW(downgrade);
    NARROW(pass);
    NARROW(park);
    NARROW(unpark);
    NARROW(signal);
    NARROW(list);
    NARROW(check_token);
    NARROW(break_lock);
    NARROW(version_read);
    NARROW(version_commit);
    NARROW(doctor);
    NARROW(connection);
    NARROW(finish);
    NARROW(wait);
    NARROW(attend);
    NARROW(kick);
    NARROW(sentry);
    NARROW(flush);
#undef NARROW
}

int hf__wrap_open(struct hf__engine *engine, const struct hf__engine_up *up,
                  hf_error *err)
{
    struct hf__wrap *wrap = (struct hf__wrap *)engine;
    struct hf__engine *inner = engine->inner;
    int rc;

    inner->up = up;
    inner->up_owner = engine;
    rc = inner->ops->open(inner, err);
    if (rc != 0)
        return rc;

    wrap->ops = *engine->ops;
    wrap->ops.name = inner->ops->name;
    wrap->ops.caps = inner->ops->caps;
    wrap->ops.flags = inner->ops->flags;
    narrow(&wrap->ops, inner->ops);
    engine->ops = &wrap->ops;
    engine->caps = inner->caps;
    return 0;
}

void hf__wrap_close(struct hf__engine *engine, bool forked)
{
    engine->inner->ops->close(engine->inner, forked);
}

void hf__wrap_connected(struct hf__engine *engine)
{
    engine->caps = engine->inner->caps;
}

hf_client *hf__wrap_client(const struct hf__engine *engine)
{
    while (engine->up == &hf__trace_up || engine->up == &hf__fault_up)
        engine = engine->up_owner;
    return engine->up_owner;
}

int hf__wrap_pass(struct hf__engine *engine, struct hf__ticket *ticket,
                  uint64_t *ret_token)
{
    return engine->inner->ops->pass(engine->inner, ticket, ret_token);
}

int hf__wrap_finish(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err)
{
    return engine->inner->ops->finish(engine->inner, query, err);
}

void hf__wrap_wait(struct hf__engine *engine, int64_t until_ns)
{
    engine->inner->ops->wait(engine->inner, until_ns);
}

void hf__wrap_attend(struct hf__engine *engine)
{
    engine->inner->ops->attend(engine->inner);
}

void hf__wrap_kick(struct hf__engine *engine)
{
    engine->inner->ops->kick(engine->inner);
}

void hf__wrap_sentry(struct hf__engine *engine, bool on)
{
    engine->inner->ops->sentry(engine->inner, on);
}

void hf__wrap_flush(struct hf__engine *engine)
{
    engine->inner->ops->flush(engine->inner);
}
