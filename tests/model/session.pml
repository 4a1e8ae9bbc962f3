/* SPDX-License-Identifier: MIT */
/*
 * session.pml - a lock of a session: GET_LOCK, advisory locks, a transaction.
 *
 * The server frees the lock when the session ends, and tells the client, which
 * hears it later. So a claim may overlap the next grant by the time that the
 * news takes, and these engines do not have told_before_regrant: CANNOT_TELL_FIRST
 * shows it.
 *
 * Checked: who has heard of its session's end claims nothing; a release is
 * answered 0 only if no other client was granted the lock before it was asked
 * for; who waits is served in the end, whatever happened to its session.
 *
 * -DBUG_GHOST claims until the old session is certainly gone, -DBUG_ZERO takes
 * "nothing is left" for 0, -DBUG_FORGOTTEN never asks again for a waiter whose
 * session ended.
 */
#define CLIENTS 2
#define FREE 255

byte owner = FREE;       /* of the lock, at the server */
bool waits[CLIENTS];     /* at the server */
bool session[CLIENTS];   /* as the server has it */
bool heard[CLIENTS];     /* the client knows that its session ended */
bool told[CLIENTS];      /* the server's push of a grant has arrived */
bool claims[CLIENTS];
bool served[CLIENTS];
byte grants;             /* at the server */
byte mine[CLIENTS];      /* which grant was ours */
byte ends;               /* of sessions, so far */

inline grant(c)
{
    owner = c;
    waits[c] = false;
    grants++;
    mine[c] = grants
}

/* Part of an atomic step of the server. */
inline pass_on()
{
    owner = FREE;
    if
    :: waits[0] -> grant(0)
    :: else ->
        if
        :: waits[1] -> grant(1)
        :: else
        fi
    fi
}

/* An administrator, a timeout, a broken connection: twice, at any time. */
proctype killer()
{
    byte c;
end:
    do
    :: atomic {
           ends < 2 ->
           if
           :: c = 0
           :: c = 1
           fi;
           if
           :: session[c] ->
               ends++;
               session[c] = false;
               waits[c] = false;
               if
               :: owner == c -> pass_on()
               :: else
               fi
           :: else
           fi;
           c = 0
       }
    od
}

/* The news travels by itself. */
proctype news(byte c)
{
end:
    do
    :: atomic { !session[c] && !heard[c] ->
           heard[c] = true;
           told[c] = false;
#ifndef BUG_GHOST
           claims[c] = false
#endif
       }
    :: atomic { session[c] && owner == c && !told[c] -> told[c] = true }
    od
}

#ifdef CANNOT_TELL_FIRST
#define CLAIM_ALONE assert(!claims[1 - me])
#else
#define CLAIM_ALONE skip
#endif

inline ask()
{
    atomic {
        heard[me] = false;
        session[me] = true;
        told[me] = false;
        if
        :: owner == FREE -> grant(me)
        :: owner == me
        :: else -> waits[me] = true
        fi
    }
}

proctype client(byte me)
{
    byte asked;
    bool zero;

    do
    :: served[me] -> break
    :: else ->
        ask();
        do
        :: atomic { told[me] && !heard[me] ->
               claims[me] = true; CLAIM_ALONE; served[me] = true };
           break
        :: heard[me] ->
#ifdef BUG_FORGOTTEN
           (told[me]); break
#else
           ask()
#endif
        od;
        assert(!(claims[me] && heard[me]));
        /* The work; then the release. */
        asked = grants;
        atomic {
            zero = false;
            if
            :: claims[me] && session[me] && owner == me ->
                zero = true; pass_on()
            :: claims[me] && !session[me] ->
#ifdef BUG_ZERO
                zero = true
#else
                skip /* unknown */
#endif
            :: else
            fi;
            claims[me] = false
        }
        assert(!zero || mine[me] == asked)
    od;
    atomic {
        if
        :: session[me] && owner == me -> pass_on()
        :: else
        fi;
        waits[me] = false; session[me] = false; heard[me] = true
    }
}

init
{
    atomic {
        run client(0); run client(1);
        run news(0); run news(1); run killer()
    }
}
