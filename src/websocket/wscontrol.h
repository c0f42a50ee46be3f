#ifndef SR_WSCONTROL_H
#define SR_WSCONTROL_H
/*
 * wscontrol: a control message of an application about its WebSocket, as GRIP says it: TEXT that begins with
 * "c:", then an object of JSON.
 *
 * Owner: the caller, with the bytes and the scratch, in which texts lie.
 * Failure: false, and what is wrong. Pure; any thread.
 */
#include "json.h"
#include "wsframe.h"

typedef enum sr_wscontrol_kind {
    SR_WSCONTROL_SUBSCRIBE,   /* channel, prev_id, filters */
    SR_WSCONTROL_UNSUBSCRIBE, /* channel */
    SR_WSCONTROL_DETACH,
    SR_WSCONTROL_KEEP_ALIVE, /* timeout, content; without content: none any more */
    SR_WSCONTROL_SET_META,   /* name, content */
    SR_WSCONTROL_OTHER,      /* known elsewhere, without a meaning here */
} sr_wscontrol_kind;

enum { SR_WSCONTROL_FILTERS_MAX = 8, SR_WSCONTROL_TIMEOUT = 55 /* s, unless it says one */ };

typedef struct sr_wscontrol {
    sr_wscontrol_kind kind;
    sr_bytes channel, prev_id, name;
    sr_bytes content;        /* at NULL: there is none */
    sr_wsframe_kind message; /* as what the content is sent */
    uint32_t timeout;        /* s */
    bool interval;           /* keep-alive: so often, not only when nothing else was sent for so long */
    unsigned n_filters;
    sr_bytes filters[SR_WSCONTROL_FILTERS_MAX];
    const char *wrong_alive, *wrong_subscribe; /* private: of members that have no meaning in other types */
} sr_wscontrol;

/* Of what follows "c:". `scratch`: as many bytes. False: *why is static. */
bool sr_wscontrol_read(sr_wscontrol *c, sr_bytes json, char *scratch, const char **why);

#endif
