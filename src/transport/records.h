#ifndef SR_RECORDS_H
#define SR_RECORDS_H
/*
 * records: TLS after the handshake. OpenSSL agrees on keys with the client; then they are taken out of its
 * object, which is freed, and the records are sealed and opened here, by the ciphers of OpenSSL (aead.h). So
 * a connection consists of two keys and two numbers: another edge can go on with it (pack), and an idle one
 * needs a quarter of the memory that OpenSSL's object takes.
 *
 * TLS 1.3 (RFC 8446) and 1.2 (RFC 5246, 5288, 7905), with AES-GCM and ChaCha20-Poly1305. Connections with
 * other ciphers, which --tls-ciphers can ask for, stay with OpenSSL (tls.c).
 *
 * Renegotiation is refused, KeyUpdate is answered. An end without close_notify counts as the end of the
 * peer's side: HTTP knows itself whether a message is complete.
 *
 * For the files of this folder only. Owner: the connection. Thread: one, as buffers are shared by all.
 * Failure: as transport.h says.
 */
#ifdef SR_TLS

#include "../base/buffer.h"
#include "../base/cursor.h"
#include "../base/list.h"
#include "aead.h"
#include "transport.h"

enum {
    SR_SECRET_MAX = 48,
    SR_KEY_UPDATE_BYTES = 5,
    SR_PLAIN_MAX = 16 * 1024, /* RFC 8446 5.1 */
    SR_RECORDS_MAX =
        128, /* opened for one read: one may have a single byte, and costs as much as 16 KiB do */
    SR_CONTROLS_MAX = 32, /* records in a row without bytes for the caller: the peer wants to keep us busy */
    SR_WIRE_MAX = 16 * 1024, /* of replies to the peer's control messages: then nothing more is read */
};

/* One direction. */
typedef struct sr_record_side {
    uint8_t secret[SR_SECRET_MAX]; /* TLS 1.3: the traffic secret; 1.2: the key */
    uint8_t iv[12];                /* TLS 1.2 with AES-GCM: 4 bytes of it */
    uint64_t seq;                  /* of the next record */
} sr_record_side;

/* All that the handshake has agreed on. No pointers: it passes to another process as it is. */
typedef struct sr_record_keys {
    uint8_t tls13, sha384, aead, unused[3];
    uint16_t
        most; /* bytes of plaintext in a record of ours: 2^14, or what the client can take (RFC 6066 4) */
    sr_record_side in, out;
} sr_record_keys;

typedef struct sr_records {
    sr_transport base; /* must be first */
    int socket;
    bool closed;                       /* the peer has said close_notify, or the socket has ended */
    bool told;                         /* a read has returned 0 for that */
    bool failed;                       /* by a fatal error; nothing is read or written any more */
    bool ended;                        /* close_notify is in wire, or sent */
    uint8_t controls;                  /* records in a row that brought no bytes for the caller */
    uint8_t n_part;                    /* TLS 1.3: bytes in `part` */
    uint8_t part[SR_KEY_UPDATE_BYTES]; /* a KeyUpdate that is not complete: it may come in several records */
    sr_buffer wire;                    /* what the socket has not taken */
    size_t owed;     /* bytes of the caller that are encrypted in wire and were not counted as taken */
    sr_buffer raw;   /* received and not opened: a part of a record, seldom more */
    sr_buffer plain; /* opened and not read */
    sr_buffer facts; /* share/facts.h */
    sr_record_keys keys;
    /*
     * Contexts of OpenSSL, two thirds of what an idle connection would need: those of one that has read
     * nothing for some seconds are freed when others are used, and made of the keys again when they are
     * needed.
     */
    sr_aead in, out;
    sr_link keyed;   /* in the list of those that have contexts, the one used last at its end */
    int64_t used_at; /* seconds of a monotonic clock */
} sr_records;

/*
 * Goes on with these keys. The caller has set `socket`, and wire, raw, facts and closed as the handshake has
 * left them. False: no memory; *r is as it was.
 */
bool sr_records_begin(sr_records *r, const sr_record_keys *keys);

/* Frees all but *r itself. */
void sr_records_wipe(sr_records *r);

/* Appends to wire. False: no memory. */
bool sr_records_put(sr_records *r, const void *at, size_t len);

/* Sends wire. 0: all of it; EAGAIN: the socket is full; else why not. */
int sr_records_flush(sr_records *r, int flags);

/*
 * The caller offers again what is in wire and has left it by now (`owed`): moves behind it. Returns how many
 * bytes that is.
 */
size_t sr_records_repeated(sr_records *r, sr_cursor *c);

/* As those of sr_transport_ops. */
bool sr_records_unsent(const sr_transport *t);
sr_bytes sr_records_facts(const sr_transport *t);

/* Keys of TLS 1.2 from those that both sides know (RFC 5246 6.3). False: no memory. */
bool sr_records_derive12(sr_record_keys *keys, const uint8_t *master, size_t len, const uint8_t client[32],
                         const uint8_t server[32]);

/* Goes on with what pack has made in another process. NULL: it is not whole, or there is no memory. */
sr_transport *sr_records_unpack(sr_bytes packed, int socket);

#endif
#endif
