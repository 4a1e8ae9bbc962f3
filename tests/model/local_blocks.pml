/* SPDX-License-Identifier: MIT */
/*
 * local_blocks.pml - who owns a block of the embedded engine (block.c).
 *
 * Clients change buckets: load the word, copy the block, fill a spare one, swap
 * the word, take the old one. A client without a spare claims one. One client
 * may be killed anywhere, and its blocks are then claimed by the other. Checked
 * at every step:
 *
 *   - a block that is written is private to its writer, and in no bucket;
 *   - a copy that the second look at the word has confirmed is the block that
 *     was swapped in, whole.
 *
 * -DBUG_NO_LOOK leaves out the look at the bucket, -DBUG_NO_TAG the tag,
 * -DBUG_NO_OWNER takes the old block without asking who owns it: spin has to
 * find each.
 */
#define CLIENTS 2
#define BLOCKS 4
#define BUCKETS 2
#ifndef OPS
#define OPS 2
#endif

byte owner[BLOCKS + 1];   /* 0: nobody */
byte tag[BLOCKS + 1];
byte place[BLOCKS + 1];   /* the bucket it was written for */
byte content[BLOCKS + 1];
byte word[BUCKETS];       /* the block; 0: empty */
byte version[BUCKETS];
byte committed[BUCKETS];  /* what was swapped in last */
byte spare[CLIENTS + 1];
bool dead[CLIENTS + 1];
byte written;             /* a new content every time */

#define INSTALLED(u) (word[0] == u || word[1] == u)
#ifdef BUG_NO_TAG
#define NEXT_TAG(u) skip
#else
#define NEXT_TAG(u) tag[u]++
#endif

inline gain(u)
{
    assert(!INSTALLED(u));
    assert(dead[3 - me] || spare[3 - me] != u);
    spare[me] = u
}

/* claim(): the owner, then the bucket, then the swap of the owner. */
inline claim(u)
{
    d_step { o = owner[u]; t = tag[u] };
    if
    :: (o == 0 || o == me || dead[o]) ->
        p = place[u];
        if
#ifndef BUG_NO_LOOK
        :: word[p] == u -> skip
#endif
        :: else ->
            atomic {
                if
                :: owner[u] == o && tag[u] == t ->
                    owner[u] = me;
                    NEXT_TAG(u);
                    gain(u)
                :: else -> skip
                fi
            }
        fi
    :: else -> skip
    fi
}

/* One change of bucket b; empties it if it has no spare block. */
inline change(b)
{
    d_step { w = word[b]; v = version[b] };
    if
    :: w != 0 ->
        d_step { o = owner[w]; t = tag[w] };
        x = content[w];
        p = place[w];
        atomic {
            if
            :: word[b] == w && version[b] == v ->
                assert(p == b && x == committed[b]);
                ok = true
            :: else -> ok = false
            fi
        }
    :: else -> ok = true
    fi;
    if
    :: ok && spare[me] != 0 ->
        s = spare[me];
        atomic { assert(!INSTALLED(s)); place[s] = b };
        atomic { assert(!INSTALLED(s)); written++; x = written; content[s] = x }
    :: ok && spare[me] == 0 -> s = 0
    :: else -> skip
    fi;
    if
    :: ok ->
        atomic {
            if
            :: word[b] == w && version[b] == v ->
                word[b] = s;
                version[b]++;
                committed[b] = x;
                spare[me] = 0
            :: else -> ok = false
            fi
        };
        if
        :: ok && w != 0 ->
            atomic {
#ifndef BUG_NO_OWNER
                if
                :: owner[w] == o && tag[w] == t ->
                    owner[w] = me;
                    NEXT_TAG(w);
                    gain(w)
                :: else -> skip
                fi
#else
                owner[w] = me;
                NEXT_TAG(w);
                gain(w)
#endif
            }
        :: else -> skip
        fi
    :: else -> skip
    fi
}

proctype client(byte me)
{
    byte n, w, v, o, t, p, x, s;
    bool ok;

    {
        do
        :: n < OPS ->
            n++;
            if
            :: change(0)
            :: change(1)
            :: spare[me] == 0 -> claim(1)
            :: spare[me] == 0 -> claim(2)
            :: spare[me] == 0 -> claim(3)
            fi
        :: else -> break
        od
    } unless { dead[me] }
}

/* Kills the first client, sooner or later or never. */
proctype killer()
{
    if
    :: dead[1] = true
    :: skip
    fi
}

init {
    atomic {
        owner[1] = 1; spare[1] = 1;
        owner[2] = 2; spare[2] = 2;
        owner[3] = 0; place[3] = 0; content[3] = 100; word[0] = 3;
        committed[0] = 100;
        run client(1);
        run client(2);
        run killer()
    }
}
