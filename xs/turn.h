#ifndef SIRIUS_TURN_H
#define SIRIUS_TURN_H
/* turn: whose request is at hand. What callbacks of PSGI carry is its serial. */
#include "perlapi.h"

#include "env.h"
#include "site.h"
#include "socket.h"
#include "stream.h"
#include "wire.h"

/*
 * The turn: the request at hand and its response. Each has a serial. A responder, a writer or a callback for
 * early hints that belongs to another serial does nothing.
 */
typedef struct sirius_turn {
    UV serial;
    const sirius_site *site; /* of its listener */
    SSize_t temporaries;     /* values on perl's stack of temporaries above this are of the request */
    bool open;               /* false between two requests, and once the response is complete */
    bool inert;              /* freeing what the application has returned runs no code */
    sirius_env env;
    sirius_wire wire;
    sirius_stream stream;
    sirius_io io;
} sirius_turn;

/* The request loop of this process while it runs, else NULL: what callbacks of PSGI use. */
extern sirius *sirius_current;
sirius *sirius_own(pTHX); /* the same, but NULL in a thread of the application */
/*
 * The same, but NULL unless the request of this serial is being served; also in a child that was forked
 * meanwhile.
 */
sirius *sirius_alive(pTHX_ UV serial);

/* The same as sirius_alive, but NULL in a child that the application has forked. */
sirius *sirius_serving(pTHX_ UV serial);

/* Whether the response of this serial is complete already, though the application goes on. */
bool sirius_answered(pTHX_ UV serial);

/* A new sub of C that carries a serial, as a reference. */
SV *sirius_closure(pTHX_ XSUBADDR_t body, UV serial);

#endif
