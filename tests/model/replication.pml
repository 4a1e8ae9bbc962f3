/* SPDX-License-Identifier: MIT */
/*
 * replication.pml - a lease on a master whose replica follows later: Sentinel,
 * Redis Cluster, a standby of a database.
 *
 * Two clients ask, claim, change a guarded counter and release. The replica
 * takes the master's state over at any time, and once takes its place: what it
 * had not taken over is lost. Tokens are one more than the last, or the clock,
 * whichever is more; a failover takes a moment of that clock.
 *
 * The engine cannot keep two claims apart then (CANNOT_EXCLUDE shows it). Checked
 * is what it does promise: without a failover no two claims; tokens grow in
 * spite of it; and a counter that compares them, when it is read and when it is
 * written, loses no update, however slow its writers are.
 *
 * -DBUG_TOKEN_OF_COUNTER counts tokens on the master alone, -DBUG_NO_FENCE has a
 * counter that does not compare, -DBUG_WRITE_ONLY one that compares when it is
 * written alone, -DBUG_FROM_ANSWER counts the claim from the answer,
 * -DBUG_NO_COMPARE releases whatever is there.
 */
#define LEASE 2
#define END 4
#define FREE 255

byte now = 1;
/* The master, and what the replica has of it. */
byte owner = FREE;
byte until;
byte token;
byte copied_owner = FREE;
byte copied_until;
byte copied_token;
byte serves_from;
bool failed_over;

byte claim[2];
byte newest;   /* token of a grant */
byte seen;     /* by the counter */
byte value;    /* of the counter */
byte accepted; /* changes of it */

/* What has ended is forgotten at once: fewer states, and the same answers. */
proctype clock()
{
end:
    do
    :: d_step {
           now < END -> now++;
           if
           :: owner != FREE && now >= until -> owner = FREE; until = 0
           :: else
           fi;
           if
           :: copied_owner != FREE && now >= copied_until ->
               copied_owner = FREE; copied_until = 0
           :: else
           fi
       }
    od
}

proctype fate()
{
end:
    do
    :: d_step {
           !failed_over && (copied_token != token || copied_owner != owner) ->
           copied_owner = owner; copied_until = until; copied_token = token
       }
    :: d_step {
           !failed_over ->
           failed_over = true;
           owner = copied_owner; until = copied_until; token = copied_token;
           serves_from = now + 1
       }
    od
}

/* One step of the master; a tick of its clock has room for four tokens. */
inline ask()
{
    d_step {
        sent = now;
        if
        :: now >= serves_from && owner == FREE ->
            owner = me; until = now + LEASE;
#ifdef BUG_TOKEN_OF_COUNTER
            token = token + 1;
#else
            token = (token + 1 > 4 * now -> token + 1 : 4 * now);
#endif
            assert(token > newest);
            newest = token;
            mine = token
        :: else -> mine = 0
        fi
    }
}

/* The answer arrives, whenever. */
inline hear()
{
    d_step {
#ifdef BUG_FROM_ANSWER
        sent = now;
#endif
        if
        :: now < sent + LEASE ->
            claim[me] = sent + LEASE;
#ifdef CANNOT_EXCLUDE
            assert(claim[1 - me] <= now)
#else
            assert(failed_over || claim[1 - me] <= now)
#endif
        :: else -> mine = 0
        fi
    }
}

/* Read, and write later: the claim may have ended in between. */
inline count()
{
    d_step {
#if defined(BUG_NO_FENCE) || defined(BUG_WRITE_ONLY)
        had = value;
#else
        if
        :: mine >= seen -> seen = mine; had = value
        :: else -> mine = 0
        fi
#endif
    };
    d_step {
        if
#ifdef BUG_NO_FENCE
        :: mine != 0 ->
#else
        :: mine != 0 && mine >= seen ->
#endif
            seen = (mine > seen -> mine : seen);
            value = had + 1;
            accepted++;
            assert(value == accepted)
        :: else
        fi;
        had = 0
    }
}

inline release()
{
    d_step {
        claim[me] = 0;
#ifdef BUG_NO_COMPARE
        owner = FREE; until = 0;
#else
        if
        :: owner == me -> owner = FREE; until = 0
        :: else
        fi;
#endif
        mine = 0; sent = 0
    }
}

proctype client(byte me)
{
    byte sent;
    byte mine;
    byte had;
    byte rounds = me; /* the second client asks once */

    do
    :: rounds == 2 -> break
    :: rounds < 2 ->
        rounds++;
        ask();
        if
        :: mine != 0 ->
            hear();
            if
            :: mine != 0 -> count()
            :: else
            fi;
            release()
        :: else -> sent = 0
        fi
    od
}

init
{
    atomic { run client(0); run client(1); run clock(); run fate() }
}
