#ifndef SIRIUS_ENVPOOL_H
#define SIRIUS_ENVPOOL_H
/*
 * envpool: hashes that serve one request after the other.
 *
 * Every request sees a hash of fresh scalars, and an application may change, keep or destroy all of it. But
 * to make and free 25 keys and scalars costs more than all else that a request needs of user space. So at the
 * end of a request, when nobody but the pool holds the hash, it is scrubbed: keys that were added are
 * deleted, and every value that is not exactly what was put there, or that somebody else holds as well, gives
 * way to a new scalar. A hash whose own keys have changed is given up.
 *
 * There is one hash for each recent shape. A shape is the listener and the list of field names: clients that
 * send the same names are most of those that come again.
 */
#include "input.h"

enum { ENVPOOL_FIELDS = 32, ENVPOOL_SLOTS = ENVPOOL_FIELDS + 32 };

typedef enum envpool_kind {
    ENVPOOL_TEXT,   /* set for each request */
    ENVPOOL_NUMBER, /* likewise */
    ENVPOOL_CONST,  /* a copy of `master` */
    ENVPOOL_ARRAY,  /* a reference to an array of its own, with the numbers of `master` in it, or empty */
    ENVPOOL_INPUT,  /* psgi.input: see input.h */
    ENVPOOL_LAZY,   /* see lazy.c; lazy_kind */
} envpool_kind;

typedef struct envpool_slot {
    HE *he;
    HE **
        link; /* what points to he: its bucket, or the entry before it. Sound when all before it in `walk` is */
    HEK *
        hek; /* of he; its key is held by the process or by `fields`, so that it can be compared by address */
    SV *value;     /* what the entry must hold; not counted: the entry does that */
    SV *master;    /* owned by the process */
    uint64_t head; /* how the head of value must be: see head_of */
    IV number;     /* of one in `numbers` */
    uint8_t kind, lazy_kind;
} envpool_slot;

struct envpool_env {
    HV *hv;  /* NULL: free. Counted */
    SV *ref; /* what the application gets: a reference to it, while nobody has changed or kept that. Counted */
    bool in_use; /* by the request at hand */
    UV seal;     /* another one after each envpool_seal of this process, never 0: slots are where they were */
    U32 flags;   /* of hv when it was made */
    HE **array;
    STRLEN max;
    uint8_t listener, n_fields;
    uint8_t n_slots;
    uint8_t n_special, n_numbers;
    envpool_slot *walk[ENVPOOL_SLOTS];    /* slots in the order in which a walk through the hash finds them */
    envpool_slot *numbers[ENVPOOL_SLOTS]; /* those of constants that are an integer and no more */
    envpool_slot *special[ENVPOOL_SLOTS]; /* others whose value matters: all but text and number */
    SV *fields[ENVPOOL_FIELDS];           /* the shape: keys in the order of the request's fields. Counted */
    envpool_slot slots[ENVPOOL_SLOTS];
    sirius_input input;
};

/* One of this shape that is scrubbed and free, or NULL. */
envpool_env *envpool_find(envpool_env *pool, uint8_t listener, SV *const *fields, unsigned n_fields);

/* Room for a new one: the least recently made that is not in use is given up. */
envpool_env *envpool_claim(pTHX_ envpool_env *pool, unsigned *clock);

/*
 * After all slots are stored in env->hv: notes what it looks like and of what shape it is. False: there is not one entry for
 * each slot, so a slot points to what is freed. Then it is only good for envpool_forget.
 */
bool envpool_seal(pTHX_ envpool_env *env, uint8_t listener, SV *const *fields, unsigned n_fields);

/* The slot of a key that is a shared string, or NULL. */
const envpool_slot *envpool_slot_of(const envpool_env *env, SV *key);

/* The reference to hand to the application; stays the pool's. */
SV *envpool_ref(pTHX_ envpool_env *env);
bool envpool_ref_intact(const envpool_env *env); /* nobody has changed or kept it */

/*
 * The request has left everything as it was made, no cleanup handler or harakiri among it, and nobody but the pool
 * holds the hash: then no code that could change it is left either.
 */
bool envpool_untouched(pTHX_ const envpool_env *env);

/* At the end of its request, after the last temporary is freed: back for the next, scrubbed first unless it was
 * untouched, or given up. */
void envpool_give_back(pTHX_ envpool_env *env, bool untouched);

void envpool_forget(pTHX_ envpool_env *env);

/* A new value of its kind for a slot whose kind and master are set, and its entry in env->hv. `key` is a shared
 * string that outlives the hash. */
void envpool_put(pTHX_ envpool_env *env, envpool_slot *slot, SV *key);

/* A string for a text slot: into the scalar that is there, which scrub has found to be ours alone. */
static inline void envpool_set(pTHX_ const envpool_slot *slot, const char *at, STRLEN len)
{
    SV *sv = slot->value;
    if (SvLEN(sv) <= len || SvIsCOW(sv)) {
        sv_setpvn(sv, len ? at : "", len);
        return;
    }
    if (len)
        memcpy(SvPVX(sv), at, len);
    SvPVX(sv)[len] = '\0';
    SvCUR_set(sv, len);
}

#endif
