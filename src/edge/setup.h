#ifndef SR_SETUP_H
#define SR_SETUP_H
/*
 * setup: what the supervisor tells an edge on its command line, as words NAME=VALUE (share/words.h).
 *
 * Owner: the caller, who calls free. Lifetime: `name`, `log.format` and the texts
 * of the listeners point into the words, which must outlive the edge. The numbers of descriptors are those
 * that the process has inherited.
 * Called by: src/sirius-edge.c, and by tests, which fill the struct themselves.
 */
#include "../conn/config.h"
#include "../conn/engine.h"
#include "../log/sink.h"
#include "../share/sleepers.h"
#include "../share/words.h"
#include "../static/mount.h"
#include "../transport/keyfiles.h"
#include "lanerules.h"

#include <sys/types.h>

/* Which responses may be left with the edge */
typedef enum sr_holds {
    SR_HOLDS_NONE,
    SR_HOLDS_ALL, /* --hold */
    /* those of the server itself (--live-reload); what clients and applications say means nothing */
    SR_HOLDS_OWN,
    SR_HOLDS_KINDS,
} sr_holds;

/* HTTP/2 over TLS */
typedef enum sr_http2 {
    SR_HTTP2_OFF,
    SR_HTTP2_ON,    /* --enable-http2: a build without it is an error */
    SR_HTTP2_BUILT, /* where the build has it */
    SR_HTTP2_KINDS,
} sr_http2;

enum { SR_SETUP_DESCRIPTORS = SR_WORDS_N + SR_LISTENERS_MAX + SR_EDGES_MAX };

/* Name and port of a listener: SERVER_NAME and SERVER_PORT of an application, %v and %p of the access log. */
typedef struct sr_site {
    sr_bytes name, port;
} sr_site;

typedef struct sr_setup {
    sr_config config;
    const char *layout;  /* of who starts the edge, or NULL; see share/layout.h */
    const char *name;    /* what ps shows after "sirius: " */
    bool detach;         /* daemonize: leave the terminal or pipe from which the server was started */
    int lobby;           /* the listening socket that workers connect to; see share/door.h */
    int sleepers;        /* shared memory; see share/sleepers.h */
    int lifeline;        /* pipe from the supervisor, whose end of file means that it is gone; -1: none */
    int report;          /* pipe for messages to the supervisor; -1: they go to STDERR */
    int supervisor;      /* line on which the supervisor sends notes; -1: none. See share/door.h */
    uint32_t owner;      /* PID of the process that has started this edge for itself (--workers 0); 0: none */
    int64_t graceful_ns; /* --graceful-timeout */
    int64_t slow_ns;     /* --slow-log; 0: off */
    uint32_t slow_max;   /* reports of it in a minute */
    int scoreboard;      /* shared memory; -1: none */
    int common;          /* shared memory of all edges; -1: there is one edge only */
    int bells[SR_EDGES_MAX]; /* an eventfd for each place that an edge may have */
    uint32_t n_bells;
    uint32_t edge; /* number of this edge: its place in the sleepers, its row after those of the workers */
    struct {
        int fd;
        bool is_unix, is_tls, is_h2c;
        sr_site site;
    } listeners[SR_LISTENERS_MAX];
    unsigned n_listeners;
    uint8_t http2;      /* sr_http2 */
    sr_lanerules lanes; /* of --lane */
    char *websocket;    /* of --websocket: paths with spaces between them, or "off"; NULL: all paths; owned */
    uint8_t hold;       /* sr_holds */
    sr_mounts *mounts;  /* of --static; NULL: none; owned */
    sr_mounts *webroot; /* of --acme-webroot, one folder; NULL: none; owned */
    bool strict;    /* one of these folders that can't be opened is an error; otherwise it is tried again */
    bool redirects; /* --https-redirect */
    uint32_t https_port; /* its port; 0: that of a listener */
    int keys;            /* line to the keeper, by which keys come; -1: none. See keeper.h */
    bool keeper;         /* this process is the keeper: it reads keyfiles, and serves no client */
    bool sandbox;        /* see sandbox.h */
    /* once it has the keys, it waits for a byte of this pipe before it serves; -1: it does not */
    int barrier;
    bool check;           /* only checks the keyfiles, tells on STDOUT, and ends */
    int legacy_keys;      /* in a keeper: line to the keeper before, for the keys of tickets; -1: none */
    sr_keyfiles keyfiles; /* of the keeper, or of an edge without one; owned */
    sr_buffer keyset;     /* what was read from them; owned, to be wiped */
    int64_t uid, gid;     /* to change to; -1: stay as started */
    gid_t *groups;        /* supplementary groups; owned */
    size_t n_groups;
    char *tmpdir, *server, *hsts, *id_field; /* owned */
    struct {
        int fd; /* owned by the edge once it is made; -1: no access log */
        sr_sink_kind kind;
        uint32_t priority; /* for syslog: facility * 8 + severity */
        const char *format;
        int64_t min_ns; /* requests that took less are left out */
        bool errors_only;
        bool at_once; /* each line is written when it is complete, for somebody who watches */
    } log;
} sr_setup;

/* Nothing is given: no descriptor, no listener, no log, all limits 0. */
void sr_setup_init(sr_setup *s);

/*
 * Reads argv[1] and the words that follow. Calls init first. On failure returns false, *word is the word at
 * fault, and *why is a static text that continues it: "is not a number".
 */
bool sr_setup_read(sr_setup *s, int argc, char **argv, const char **word, const char **why);

/* The numbers of all descriptors that were given, -1 among them. Returns how many. */
unsigned sr_setup_descriptors(const sr_setup *s, int fds[SR_SETUP_DESCRIPTORS]);

void sr_setup_free(sr_setup *s); /* what is owned */

#endif
