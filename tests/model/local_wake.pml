/* SPDX-License-Identifier: MIT */
/*
 * local_wake.pml - nobody sleeps for ever (attend.c, waiting.c, change.c).
 *
 * A holder, and two waiters behind it in line. The holder releases, or is
 * killed anywhere, also between the swap that grants and the wake-up; so may
 * the first waiter be. A waiter reads its inbox, looks at the lock (accepts a
 * grant, drops the dead, takes the lock if it is the first), marks the life
 * word of the one before it, and sleeps on both. The half-second looks that
 * repair other losses are left out: here every wake-up has to come.
 *
 * Checked: whoever still lives has had the lock in the end (no invalid end
 * state), and never two at once.
 *
 * -DBUG_LATE_INBOX reads the inbox after the lock, -DBUG_NO_MARK does not mark
 * the life word, -DBUG_UNMARKED_SLEEP sleeps on the inbox alone.
 */
#define N 3
#define NOBODY 255

/* The lock, changed by one swap at a time. */
byte holder = 0;          /* who holds, or has been granted */
bool waits[N];            /* 1 and 2 stand in line, in this order */

byte inbox[N];
bool asleep[N];
bool woken[N];
byte watched[N] = NOBODY; /* whose life word it sleeps on */
bool marked[N];           /* FUTEX_WAITERS in the word that N+1 watches */
bool dead[N];
bool in[N];               /* believes that it holds the lock */

#define NEXT (waits[1] -> 1 : (waits[2] -> 2 : NOBODY))

/* Grant to the next in line; part of an atomic swap. */
inline pass_on()
{
    holder = NEXT;
    if
    :: holder != NOBODY -> waits[holder] = false
    :: else -> skip
    fi
}

inline notify(to)
{
    if
    :: to != NOBODY ->
        inbox[to]++;
        atomic {
            if
            :: asleep[to] -> woken[to] = true
            :: else -> skip
            fi
        }
    :: else -> skip
    fi
}

/* What the kernel does when a thread dies. */
inline die(who)
{
    atomic {
        if
        :: !dead[who] ->
            dead[who] = true;
            in[who] = false;
            if
            :: marked[who] && who < N - 1 && asleep[who + 1] &&
               watched[who + 1] == who -> woken[who + 1] = true
            :: marked[who] && who == 0 && asleep[2] && watched[2] == 0 ->
               woken[2] = true
            :: else -> skip
            fi
        :: else -> skip
        fi
    }
}

inline release(me)
{
    atomic {
        in[me] = false;
        pass_on();
        to = holder
    };
    notify(to)
}

proctype first()
{
    byte to;

    {
        release(0)
    } unless { dead[0] }
}

proctype waiter(byte me)
{
    byte seen, before, to;
    bool got;

    {
        do
        :: got -> break
        :: else ->
#ifndef BUG_LATE_INBOX
            seen = inbox[me];
#endif
            /* The swap: drop the dead, promote, accept. */
            atomic {
                to = NOBODY;
                if
                :: waits[1] && dead[1] -> waits[1] = false
                :: else -> skip
                fi;
                if
                :: holder != NOBODY && dead[holder] ->
                    pass_on();
                    to = holder
                :: holder == NOBODY -> pass_on(); to = holder
                :: else -> skip
                fi;
                if
                :: holder == me ->
                    assert(!in[0] && !in[1] && !in[2]);
                    in[me] = true;
                    got = true;
                    to = NOBODY
                :: else ->
                    before = ((me == 2 && waits[1]) -> 1 : holder)
                fi
            };
            notify(to);
            if
            :: got -> skip
            :: else ->
#ifdef BUG_LATE_INBOX
                seen = inbox[me];
#endif
                /* Mark its life word; dead already: look again. */
                atomic {
                    if
                    :: dead[before] -> before = NOBODY
                    :: else ->
#ifndef BUG_NO_MARK
                        marked[before] = true
#else
                        skip
#endif
                    fi
                };
                if
                :: before == NOBODY -> skip
                :: else ->
                    atomic { /* futex_waitv compares and sleeps at once */
                        if
#ifndef BUG_UNMARKED_SLEEP
                        :: inbox[me] == seen && !dead[before] ->
#else
                        :: inbox[me] == seen ->
#endif
                            asleep[me] = true;
                            woken[me] = false;
                            watched[me] = before
                        :: else -> skip
                        fi
                    };
                    (!asleep[me] || woken[me]);
                    atomic { asleep[me] = false; watched[me] = NOBODY }
                fi
            fi
        od;
        release(me)
    } unless { dead[me] }
}

/* Kills the holder, the first waiter, both or none, whenever. */
proctype killer()
{
    if
    :: die(0)
    :: skip
    fi;
    if
    :: die(1)
    :: skip
    fi
}

init {
    atomic {
        in[0] = true;
        waits[1] = true;
        waits[2] = true;
        run first();
        run waiter(1);
        run waiter(2);
        run killer()
    }
}
