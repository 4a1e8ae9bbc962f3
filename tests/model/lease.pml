/* SPDX-License-Identifier: MIT */
/*
 * lease.pml - a lease in a store: a row of a table, a key of Redis.
 *
 * Two clients ask, renew, release and withdraw; a message may be lost or late in
 * both directions, a client may be slow anywhere. The store's clock may run
 * ahead of the clients' by DRIFT in a lease; their claim is shorter by MARGIN.
 *
 * What the code does and public descriptions leave out: the client's claim. It
 * ends at a deadline of its own clock, which counts from the instant of the
 * request, whatever the client does or hears.
 *
 * Checked: no two claims at one instant, tokens grow, and every client ends.
 *
 * -DBUG_FROM_ANSWER counts the claim from the answer, -DBUG_NO_MARGIN claims
 * the whole lease, -DBUG_NO_COMPARE releases whatever is there, -DBUG_RENEW_ANY
 * renews the lease of another, and believes it after the deadline, -DBUG_STALE_TOKEN gives a token twice.
 */
#define CLIENTS 2
#define LEASE 3
#define DRIFT 1
#ifdef BUG_NO_MARGIN
#define MARGIN 0
#else
#define MARGIN DRIFT
#endif
#define END 5

#define FREE 255
mtype = { ASK, RENEW, RELEASE, GRANTED, REFUSED, DONE };

byte now;
/* The store. */
byte owner = FREE;
byte until;
byte token;
/* Deadlines of claims; 0: no claim. */
byte claim[CLIENTS];
byte seen_token;

/* One message under way in each direction, at most. */
chan to_store[CLIENTS] = [1] of { mtype };
chan to_client[CLIENTS] = [1] of { mtype, byte };

#define alone(c) (claim[1 - c] <= now)

inline expire()
{
    if
    :: owner != FREE && now >= until -> owner = FREE; until = 0
    :: else
    fi
}

/* The store may count a lease that is DRIFT shorter. */
inline lend()
{
    if
    :: until = now + LEASE
    :: until = now + LEASE - DRIFT
    fi
}

proctype store()
{
    byte c;
    mtype what;
end:
    do
    :: atomic {
           if
           :: to_store[0]?what -> c = 0
           :: to_store[1]?what -> c = 1
           fi;
           if
           :: what == ASK ->
               if
               :: owner == FREE ->
                   owner = c;
#ifndef BUG_STALE_TOKEN
                   token++;
#endif
                   lend();
                   to_client[c]!GRANTED(token)
               :: owner == c -> lend(); to_client[c]!GRANTED(token)
               :: else -> to_client[c]!REFUSED(0)
               fi
           :: what == RENEW ->
#ifdef BUG_RENEW_ANY
               lend(); to_client[c]!GRANTED(token)
#else
               if
               :: owner == c -> lend(); to_client[c]!GRANTED(token)
               :: else -> to_client[c]!REFUSED(0)
               fi
#endif
           :: what == RELEASE ->
#ifdef BUG_NO_COMPARE
               owner = FREE; until = 0;
#else
               if
               :: owner == c -> owner = FREE; until = 0
               :: else
               fi;
#endif
               to_client[c]!DONE(0)
           fi;
           c = 0; what = 0
       }
    od
}

/* What has ended is forgotten at once: fewer states, and the same answers. */
proctype clock()
{
end:
    do
    :: d_step { now < END -> now++; expire() }
    od
}

/* Messages that wait may be lost. */
proctype network()
{
    mtype what;
    byte t;
    byte lost;
end:
    do
    :: atomic { lost < 1 && nempty(to_store[0]) -> to_store[0]?what; lost++; what = 0 }
    :: atomic { lost < 1 && nempty(to_client[0]) ->
                to_client[0]?what, t; lost++; t = 0; what = 0 }
    od
}

inline claims(from)
{
    if
    :: now < from + LEASE - MARGIN ->
        claim[me] = from + LEASE - MARGIN;
        assert(alone(me))
    :: else -> claim[me] = 0
    fi
}

/* Ask the store to forget us, until it has said so. */
inline leave()
{
    claim[me] = 0;
    do
    :: atomic { to_client[me]?what, got ->
           got = 0; sent = 0;
           if
           :: what == DONE -> what = 0; break
           :: else -> what = 0
           fi }
    :: atomic { empty(to_store[me]) && empty(to_client[me]) ->
                to_store[me]!RELEASE }
    od
}

proctype client(byte me)
{
    byte sent;
    byte got;
    mtype what;
    byte rounds = me; /* the second client asks once */

    do
    :: rounds == 2 -> break
    :: rounds < 2 ->
        atomic { rounds++; sent = now; to_store[me]!ASK };
        if
        :: atomic { to_client[me]?GRANTED, got ->
#ifdef BUG_FROM_ANSWER
               sent = now;
#endif
               claims(sent);
               if
               :: claim[me] != 0 -> assert(got > seen_token); seen_token = got
               :: else
               fi }
           if
           :: claim[me] != 0 ->
               /* One renewal, answered, late or lost. */
               atomic { sent = now; to_store[me]!RENEW };
               if
               :: atomic { to_client[me]?GRANTED, got ->
#ifdef BUG_RENEW_ANY
                      claims(sent) }
#else
                      if
                      :: now < claim[me] -> claims(sent)
                      :: else -> claim[me] = 0
                      fi }
#endif
               :: to_client[me]?REFUSED, got -> claim[me] = 0
               :: now >= claim[me] || now == END
               fi
           :: else
           fi;
           leave()
        :: to_client[me]?REFUSED, got
        :: now > sent || now == END -> leave() /* gives up */
        fi
    od;
    claim[me] = 0
}

init
{
    atomic {
        run client(0); run client(1);
        run store(); run clock(); run network()
    }
}
