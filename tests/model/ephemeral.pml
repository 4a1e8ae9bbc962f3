/* SPDX-License-Identifier: MIT */
/*
 * ephemeral.pml - numbered nodes that end with their session: ZooKeeper, etcd.
 *
 * Two clients each create a node, look whether it is the first, and else watch
 * the one before it. The answer to a create may be lost; a session may expire.
 * A claim ends CLAIM ticks after the last sign of life that the server answered,
 * sent included; the server ends the session after SESSION ticks, so the claim
 * has to be shorter. This is what the recipes leave out.
 *
 * Checked: no two claims at one instant, and every client is served.
 *
 * -DBUG_NO_SEEK creates another node when an answer was lost, -DBUG_WATCH_RACE
 * does not look again after the watch, -DBUG_OLD_NODE trusts the node of an
 * expired session, -DBUG_FROM_ANSWER counts the claim from the answer,
 * -DBUG_ALONE believes a leader that was replaced, and that nobody follows.
 */
#define CLIENTS 2
#define NODES 6
#define SESSION 3
#define CLAIM 2
#define END 5
#define NONE 255

byte now;
byte owner[NODES] = NONE; /* of node i; NONE: not there */
byte next;                /* number of the next node */
byte alive[CLIENTS];      /* the session lives until then, at the server */
bool expired[CLIENTS];
byte claim[CLIENTS];      /* deadline; 0: none */
byte ended;

#define first_node (owner[0] != NONE -> 0 : (owner[1] != NONE -> 1 : \
    (owner[2] != NONE -> 2 : (owner[3] != NONE -> 3 : \
    (owner[4] != NONE -> 4 : (owner[5] != NONE -> 5 : NONE))))))

inline drop_all(c)
{
    byte i;

    for (i : 0 .. NODES - 1) {
        if
        :: owner[i] == c -> owner[i] = NONE
        :: else
        fi
    }
    i = 0
}

proctype clock()
{
end:
    do
    :: now < END -> now++
    od
}

/* The servers end a session that was silent. */
proctype expiry()
{
end:
    do
    :: d_step { !expired[0] && now >= alive[0] -> expired[0] = true; drop_all(0) }
    :: d_step { !expired[1] && now >= alive[1] -> expired[1] = true; drop_all(1) }
    od
}

inline open_session()
{
    d_step { expired[me] = false; alive[me] = now + SESSION; sent = now }
}

/* A sign of life: the servers hear it now, and its answer comes later. A leader
 * that was replaced answers none: it needs a majority. */
inline beat()
{
    atomic {
        sent = now;
        if
        :: !expired[me] -> alive[me] = now + SESSION
        :: expired[me]
#ifdef BUG_ALONE
        :: true
#endif
        fi
    }
}

inline create()
{
    d_step {
        sent = now;
        if
        :: !expired[me] && next < NODES ->
            alive[me] = now + SESSION;
            owner[next] = me;
            node = next;
            next++
        :: else -> node = NONE
        fi
    }
}

/* What we find in the list of nodes that is ours. */
inline seek()
{
    d_step {
        node = (owner[0] == me -> 0 : (owner[1] == me -> 1 :
            (owner[2] == me -> 2 : (owner[3] == me -> 3 :
            (owner[4] == me -> 4 : (owner[5] == me -> 5 : NONE))))))
    }
}

proctype client(byte me)
{
    byte sent;
    byte node = NONE;
    byte before;
    bool lost = me; /* the answer of the first client's create may be lost */

    open_session();
again:
    if
    :: expired[me] ->
#ifdef BUG_OLD_NODE
       d_step { expired[me] = false; alive[me] = now + SESSION }
#else
       node = NONE;
       open_session()
#endif
    :: else
    fi;
    if
    :: node == NONE ->
       create();
       if
       :: node != NONE && !lost ->
          /* The answer is lost. */
          lost = true;
          node = NONE;
#ifdef BUG_NO_SEEK
          create()
#else
          seek()
#endif
       :: true
       fi
    :: else
    fi;
    if
    :: next == NODES && node == NONE -> goto out /* enough was tried */
    :: else
    fi;
look:
    beat();
    atomic {
        if
#ifdef BUG_OLD_NODE
        :: node != NONE && (first_node == node || first_node == NONE) ->
#else
        :: node != NONE && owner[node] == me && first_node == node ->
#endif
           before = NONE
        :: node == NONE || owner[node] != me -> goto again
        :: else -> before = first_node
        fi
    }
    if
    :: before == NONE ->
       /* The answer may come much later: the claim counts from sent. */
       atomic {
#ifdef BUG_FROM_ANSWER
           sent = now;
#endif
           if
           :: now < sent + CLAIM ->
              claim[me] = sent + CLAIM;
              assert(claim[1 - me] <= now)
           :: else -> goto again
           fi
       }
       goto out
    :: else
    fi;
    /* Watch the one before: its end wakes us, if it is still there. */
    if
#ifdef BUG_WATCH_RACE
    :: owner[before] != NONE -> (owner[before] == NONE)
    :: owner[before] == NONE -> (false)
#else
    :: owner[before] != NONE -> (owner[before] == NONE || expired[me])
    :: owner[before] == NONE
#endif
    fi;
    goto look;
out:
    /* The end: a release, as soon as nothing is claimed. */
    atomic {
        claim[me] = 0;
        drop_all(me);
        ended++
    }
}

init
{
    atomic {
        run client(0); run client(1); run clock(); run expiry()
    }
}
