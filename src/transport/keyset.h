#ifndef SR_KEYSET_H
#define SR_KEYSET_H
/*
 * keyset: all that an edge needs to speak TLS, as one run of bytes: options, certificates with their keys,
 * keys of session tickets. The keeper makes it and the edge reads it; both are of the same build.
 *
 * The run is a head and then items: an sr_keyset_item, and its bytes. Certificates and keys are PEM; an item
 * of a key belongs to that of the certificate before it.
 *
 * It contains private keys: call sr_keyset_wipe before a run is freed. Any thread.
 */
#include "../base/buffer.h"

enum {
    SR_KEYSET_LAYOUT = 0x53525401, /* counted up when an item changes its meaning */
    SR_KEYSET_MAX = 64 * 1024 * 1024,
    SR_TICKET_SECONDS =
        12 * 3600,       /* a key makes tickets for so long, and then reads them for as long again */
    SR_TICKETS_MAX = 3,  /* the one before, the present one, the next one */
    SR_KEYSET_WHY = 512, /* bytes of a text that says what is wrong */
};

typedef enum sr_keyset_kind {
    SR_KEYSET_CERT = 1,
    SR_KEYSET_KEY,
    SR_KEYSET_FILE,    /* where the certificate before it comes from, for messages */
    SR_KEYSET_MIN,     /* "1.2" or "1.3" */
    SR_KEYSET_CIPHERS, /* in the words of OpenSSL */
    SR_KEYSET_CA,      /* of clients */
    SR_KEYSET_VERIFY,  /* "optional" or "required" */
    SR_KEYSET_TICKET,  /* an sr_ticket_key */
    SR_KEYSET_CRL,     /* of the CAs of clients; their own file may have others */
} sr_keyset_kind;

typedef struct sr_keyset_item {
    uint32_t kind, len;
} sr_keyset_item;

typedef struct sr_ticket_key {
    int64_t since; /* seconds since 1970 from which on it makes tickets */
    unsigned char name[16], cipher[32], mac[32];
} sr_ticket_key;

bool sr_keyset_begin(sr_buffer *to); /* false: no memory, likewise below */
bool sr_keyset_add(sr_buffer *to, sr_keyset_kind kind, sr_bytes bytes);

bool sr_keyset_copy(sr_buffer *to, sr_bytes run); /* adds all items of another run */

/* The next item of the run; *at is 0 at first. False: there is none, or the run is not sound (*at is 0). */
bool sr_keyset_next(sr_bytes run, size_t *at, sr_keyset_kind *kind, sr_bytes *bytes);

/* Frees it, and overwrites its bytes. */
void sr_keyset_wipe(sr_buffer *b);

#endif
