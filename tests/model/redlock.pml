/* SPDX-License-Identifier: MIT */
/*
 * redlock.pml - a majority of three servers, each with a lease of its own.
 *
 * Two clients ask two of the servers, in any order, and claim the lock with both
 * votes, until CLAIM ticks after they began to ask. One server may restart
 * once without its memory; it does not vote for a lease then (quarantine). One
 * may have a clock that jumps (CANNOT_SEE_A_JUMP): a client that was not
 * connected cannot know.
 *
 * Checked: no two claims at one instant.
 *
 * -DBUG_NO_QUARANTINE votes at once after a restart, -DBUG_MINORITY claims with
 * one vote, -DBUG_FROM_ANSWER counts from the last vote, -DBUG_NO_COMPARE takes
 * votes back that another client has by now.
 */
#define SERVERS 3
#define LEASE 2
#define CLAIM 2
#define END 4
#define FREE 255
#ifdef BUG_MINORITY
#define QUORUM 1
#else
#define QUORUM 2
#endif

byte now;
byte owner[SERVERS] = FREE;
byte until[SERVERS];
byte votes_from[SERVERS]; /* in quarantine before that */
byte claim[2];
bool restarted;

#define expire(s) \
    if \
    :: owner[s] != FREE && now >= until[s] -> owner[s] = FREE; until[s] = 0 \
    :: else \
    fi

/* What has ended is forgotten at once: fewer states, and the same answers. */
proctype clock()
{
end:
    do
    :: d_step { now < END -> now++; expire(0); expire(1); expire(2) }
    od
}

proctype fate()
{
end:
    do
    :: d_step { !restarted ->
           restarted = true;
           owner[0] = FREE; until[0] = 0;
#ifndef BUG_NO_QUARANTINE
           votes_from[0] = now + LEASE
#endif
       }
#ifdef CANNOT_SEE_A_JUMP
    :: d_step { !restarted -> restarted = true; owner[1] = FREE; until[1] = 0 }
#endif
    od
}

/* A vote, in one step at the server. */
inline vote(s)
{
    d_step {
        if
        :: now >= votes_from[s] && owner[s] == FREE ->
            owner[s] = me; until[s] = now + LEASE; yes++
        :: else
        fi
    }
}

inline take_back(s)
{
    d_step {
#ifdef BUG_NO_COMPARE
        owner[s] = FREE; until[s] = 0;
#else
        if
        :: owner[s] == me -> owner[s] = FREE; until[s] = 0
        :: else
        fi;
#endif
    }
}

proctype client(byte me)
{
    byte sent;
    byte yes;
    byte a;
    byte b;
    byte rounds = me; /* the second client asks once */

    do
    :: rounds == 2 -> break
    :: rounds < 2 ->
        d_step { rounds++; sent = now };
        if
        :: d_step { a = 0; b = 1 }
        :: d_step { a = 1; b = 2 }
        :: d_step { a = 2; b = 0 }
        fi;
        vote(a);
        vote(b);
        if
        :: atomic { yes >= QUORUM ->
#ifdef BUG_FROM_ANSWER
               sent = now;
#endif
               if
               :: now < sent + CLAIM ->
                   claim[me] = sent + CLAIM;
                   assert(claim[1 - me] <= now)
               :: else
               fi }
        :: yes < QUORUM
        fi;
        /* The work, for however long; then everything is taken back. */
        d_step { claim[me] = 0; yes = 0; sent = 0 };
        take_back(a);
        take_back(b);
        d_step { a = 0; b = 0 }
    od
}

init
{
    atomic { run client(0); run client(1); run clock(); run fate() }
}
