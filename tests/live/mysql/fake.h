/* SPDX-License-Identifier: MIT */
/* fake.h - a server that speaks the protocol, and lies. */
#ifndef HF_LIVE_MYSQL_FAKE_H
#define HF_LIVE_MYSQL_FAKE_H

/* What it says to everything behind the login. */
enum fake_lie {
    FAKE_ONE_COLUMN,       /* one row of one column, whatever is asked */
    FAKE_NULLS,            /* one row of NULLs, as many as are asked for */
    FAKE_ENDLESS_ROWS,     /* … and no end of them */
    FAKE_ENDLESS_RESULTS,  /* done, and there is another result */
    FAKE_MANY_PARAMETERS,  /* a statement has 5000 of them */
    FAKE_PROGRESS,         /* before its first word: that it makes progress */
    FAKE_NO_VARIABLE,      /* of another make, and what we set is unknown */
    FAKE_RENEWS_NOTHING,   /* takes every lock, and fails every DO 1 */
    FAKE_WAITS,            /* has no lock, and lets everybody wait */
    FAKE_PREPARES_NO_WAIT, /* has no lock, and prepares no wait for one */
};

/* Start one, for the rest of the test; its port. It cannot do TLS. */
int fake_start(enum fake_lie lie);
/* How many logins it has heard. */
int fake_logins(void);
/* How many waits for a lock. */
int fake_waits(void);
/* Break every connection; refuse the second login after it with @code. */
void fake_break(unsigned code);

#endif
