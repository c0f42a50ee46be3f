#ifndef SIRIUS_ENVPOOL_H
#define SIRIUS_ENVPOOL_H
/*
 * envpool: hashes for %env that serve one request after the other.
 *
 * Every request sees a hash of fresh scalars, and an application may change, keep or destroy all of it. But
 * making and freeing 25 keys and scalars costs more than everything else that a request needs in user space.
 * So at the end of a request, if nobody but the pool holds the hash, it is scrubbed: keys that were added are
 * deleted, and each value that is not exactly what was put there, or that somebody else holds as well, is
 * replaced by a new scalar. A hash whose own keys have changed is freed.
 *
 * There is one hash for each recent shape. A shape is the listener, whether the version is HTTP/2, and the
 * list of field names; most requests have the names of one before.
 *
 * Owner: the request loop. Thread: that of perl; another interpreter has no pool. Failure: perl's, which ends
 * the process without memory.
 */
#include "input.h"

/*
 * 0 builds without the pool: each request gets a hash of its own. To compare with, or if another perl breaks
 * the pool.
 */
#ifndef SIRIUS_ENV_POOL
#define SIRIUS_ENV_POOL 1
#endif

enum { ENVPOOL_SHAPES = 4, ENVPOOL_FIELDS = 32, ENVPOOL_SLOTS = ENVPOOL_FIELDS + 32 };

typedef enum envpool_kind {
    ENVPOOL_TEXT,   /* a string, set for each request */
    ENVPOOL_NUMBER, /* a number, likewise */
    ENVPOOL_CONST,  /* a copy of `master` */
    ENVPOOL_ARRAY,  /* a reference to a new array with the numbers of `master`, maybe none */
    ENVPOOL_INPUT,  /* psgi.input; see input.h */
    ENVPOOL_LAZY,   /* made when it is read; see lazy_kind and lazy.c */
} envpool_kind;

typedef struct envpool_slot {
    HE *he;     /* the entry of the hash */
    HE **link;  /* what points to he: its bucket or the entry before it; valid if those before in walk are */
    HEK *hek;   /* of he. Process or `fields` hold its key, so that it can be compared by address */
    SV *value;  /* what the entry must hold; the entry has the reference */
    SV *master; /* what is copied; owned by the process */
    uint64_t head; /* how the head of the value must be, see head_of */
    IV number;     /* the value, for those in `numbers` */
    uint8_t kind, lazy_kind;
} envpool_slot;

typedef struct envpool_env {
    HV *hv;       /* NULL: unused. Counted */
    SV *serial;   /* of the request at hand, for the lazy values (lazy.h). Counted */
    SV *ref;      /* the reference that the application gets, while nobody has changed or kept it. Counted */
    bool in_use;  /* by the request at hand */
    UV seal;      /* another number after each envpool_seal of this process, never 0 */
    U32 flags;    /* of hv when it was sealed */
    HE **array;   /* likewise its buckets, */
    STRLEN max;   /* and how many of them */
    uint8_t site; /* number of the listener * 2, + 1 for HTTP/2 */
    uint8_t n_fields;
    uint8_t n_slots;
    uint8_t n_special, n_numbers, n_lazy;
    envpool_slot *walk[ENVPOOL_SLOTS];    /* slots in the order in which a walk through the hash finds them */
    envpool_slot *numbers[ENVPOOL_SLOTS]; /* constants that are an integer and nothing else */
    envpool_slot *lazy[ENVPOOL_SLOTS];    /* those that are made when they are read */
    envpool_slot *special[ENVPOOL_SLOTS]; /* others whose value matters: all but texts and numbers */
    SV *fields[ENVPOOL_FIELDS];           /* the shape: keys in the order of the request's fields. Counted */
    envpool_slot slots[ENVPOOL_SLOTS];
    sirius_input input;
} envpool_env;

typedef struct envpool {
    envpool_env *of; /* ENVPOOL_SHAPES of them. Owned */
    unsigned clock;  /* which is the oldest, modulo that */
} envpool;

void envpool_init(envpool *pool);
void envpool_free(pTHX_ envpool *pool); /* zeroed, or what init has made */

/* A free entry of this shape, or NULL. */
envpool_env *envpool_find(const envpool *pool, uint8_t site, SV *const *fields, unsigned n_fields);

/* An entry for a new hash: frees the oldest that is not in use. NULL: all are in use. */
envpool_env *envpool_claim(pTHX_ envpool *pool);

/*
 * Once all slots are stored in env->hv: notes its shape and how it looks. False: the hash has not one entry
 * for each slot, so a slot points to something that is freed. Then the only call for it is envpool_forget.
 */
bool envpool_seal(pTHX_ envpool_env *env, uint8_t site, SV *const *fields, unsigned n_fields);

/* The slot of a key that is a shared string, or NULL. */
const envpool_slot *envpool_slot_of(const envpool_env *env, SV *key);

/* The reference for the application. It stays the pool's. */
SV *envpool_ref(pTHX_ envpool_env *env);
bool envpool_ref_intact(const envpool_env *env); /* nobody has changed or kept it */

/*
 * Whether the request has left everything as it was made, without a cleanup handler or harakiri, and nobody
 * but the pool holds the hash. Then there is no code left that could change it.
 */
bool envpool_untouched(pTHX_ const envpool_env *env);

/*
 * At the end of the request, after the last temporary was freed: makes the entry free for the next request,
 * scrubbed unless it was untouched, or frees the hash.
 */
void envpool_give_back(pTHX_ envpool_env *env, bool untouched);

/* Frees the hash. The entry is unused afterwards. */
void envpool_forget(pTHX_ envpool_env *env);

/*
 * Makes a value for a slot whose kind and master are set, and its entry in env->hv. `key` is a shared string
 * that outlives the hash.
 */
void envpool_put(pTHX_ envpool_env *env, envpool_slot *slot, SV *key);

/* Sets a text: writes into the scalar that is there, which nobody else holds. */
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
