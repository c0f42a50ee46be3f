#ifndef SIRIUS_XS_H
#define SIRIUS_XS_H
/*
 * What the files of xs/ share. They are the only code that knows both Perl and src/worker.
 *
 * Thread: everything here runs on the thread of perl. Owner: the object Sirius::Worker::RequestLoop, of which
 * a process has one.
 *
 * Each member is of the file whose header declares its struct. "Counted" means that the pointer holds a
 * reference; "mortal" that perl frees the value later; "inside" is explained in inside.h.
 */
#include "perlapi.h"

#include "accesslog.h"
#include "alone.h"
#include "ending.h"
#include "envpool.h"
#include "grip.h"
#include "inside.h"
#include "memory.h"
#include "response.h"
#include "row.h"
#include "site.h"
#include "turn.h"
#include "unchunk.h"
#include "worker/line.h"

#include <pthread.h>

struct sirius {
#ifdef MULTIPLICITY
    PerlInterpreter *owner; /* no other is served: threads of the application get nothing */
#endif
    pthread_t thread; /* of perl: what pthread_atfork calls may run on another one */
    sr_worker worker; /* and the request of the turn */
    sirius_inside inside;
    sirius_row row;
    sirius_ending ending;
    sirius_alone alone;
    sirius_memory memory;

    sirius_turn turn;
    sirius_named named;
    unchunk unchunk; /* of the turn; each head begins it anew */
    envpool pool;
    sirius_site site[SIRIUS_LISTENERS_MAX];
    sirius_scratch scratch;
    sr_buffer head;        /* see wire_head_begin; its memory is used again */
    sirius_accesslog *log; /* NULL: there is none */
    sirius_grip *grip;     /* NULL: nothing is held */
};

/*
 * Whether this is a child that the application has forked: it serves nothing. For one whose worker is open.
 */
static inline bool sirius_forked(const sirius *s)
{
    return sr_worker_is_child(&s->worker);
}

#endif
