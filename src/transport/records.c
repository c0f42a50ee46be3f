#ifdef SR_TLS

#include "records.h"

#include "../base/clock.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdlib.h>

enum {
    HEADER = 5,
    EXPLICIT = 8, /* bytes of the nonce that a record of TLS 1.2 with AES-GCM has */
    TAG = SR_AEAD_TAG,
    NONCE = SR_AEAD_NONCE,
    PLAIN_MAX = SR_PLAIN_MAX,
    BODY_MAX = PLAIN_MAX + 256,   /* 5.2 */
    BATCH = 4 * PLAIN_MAX,        /* of plaintext, sealed before it is sent */
    OWED_MAX = BATCH + BATCH / 8, /* a batch with its headers and tags, in records of 512 bytes too */
    INPUT = 128 * 1024 + BODY_MAX + HEADER, /* of one recv */
    SPARE_MAX = 2 * (BATCH + 4096),
    GATHERED =
        4096,    /* bytes of a record that are copied into one piece: a call of EVP costs as much as that */
    KEPT = 1024, /* bytes of memory that a part of a record may have in any case */
    /* s without a record of the peer: then its contexts go. New ones cost 3 us, four HMACs most of all */
    RESTS = 2,
};

#ifndef UPDATE_AFTER                     /* a test does not want to wait for it */
#define UPDATE_AFTER (UINT64_C(1) << 24) /* records sealed with one key (RFC 8446 5.5) */
#endif

enum { CHANGE_CIPHER_SPEC = 20, ALERT, HANDSHAKE, APPLICATION }; /* types of records */
enum { CLIENT_HELLO = 1, KEY_UPDATE = 24 };                      /* of handshake messages */
enum { WARNING = 1, FATAL };                                     /* levels of alerts */
enum {
    CLOSE_NOTIFY = 0,
    UNEXPECTED = 10,
    BAD_MAC = 20,
    OVERFLOWS = 22,
    ILLEGAL = 47,
    DECODE = 50,
    BAD_VERSION = 70,
    CANCELED = 90,
    NO_RENEGOTIATION = 100
};

/* Memory for the call at hand, and for `wire`, which most connections need for the time of a call only. */
static uint8_t input[INPUT], opened[BODY_MAX];
static sr_buffer spare;

static sr_link keyed = {&keyed, &keyed}; /* connections that have contexts */

static sr_records *of(sr_transport *t)
{
    return (sr_records *)t;
}

/* --- keys --- */

static size_t hash_len(const sr_record_keys *k)
{
    return k->sha384 ? 48 : 32;
}

static size_t key_len(const sr_record_keys *k)
{
    return sr_aead_key_len(k->aead);
}

static bool has_explicit(const sr_record_keys *k)
{
    return !k->tls13 && k->aead != SR_AEAD_CHACHA;
}

static EVP_MAC_CTX *hmac_of(bool sha384)
{
    static EVP_MAC_CTX *made[2];
    if (made[sha384])
        return made[sha384];
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha384 ? "SHA384" : "SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC_free(mac);
    if (ctx && EVP_MAC_CTX_set_params(ctx, params) != 1) {
        EVP_MAC_CTX_free(ctx);
        ctx = NULL;
    }
    return made[sha384] = ctx;
}

/* HKDF-Expand-Label with an empty context (RFC 8446 7.1), for no more bytes than the hash has. */
static bool expand(const sr_record_keys *k, const uint8_t *secret, const char *label, uint8_t *out,
                   size_t len)
{
    EVP_MAC_CTX *ctx = hmac_of(k->sha384);
    uint8_t info[32], hash[SR_SECRET_MAX];
    size_t text = strlen(label), n = 0, got;
    info[n++] = 0;
    info[n++] = (uint8_t)len;
    info[n++] = (uint8_t)(6 + text);
    memcpy(info + n, "tls13 ", 6);
    memcpy(info + n + 6, label, text);
    n += 6 + text;
    info[n++] = 0;
    info[n++] = 1; /* the counter of HKDF-Expand */
    bool made = ctx && EVP_MAC_init(ctx, secret, hash_len(k), NULL) == 1 &&
                EVP_MAC_update(ctx, info, n) == 1 && EVP_MAC_final(ctx, hash, &got, sizeof hash) == 1 &&
                got >= len;
    if (made)
        memcpy(out, hash, len);
    OPENSSL_cleanse(hash, sizeof hash);
    return made;
}

/* Key and iv of a side. */
static bool side_begin(const sr_record_keys *k, sr_record_side *side, sr_aead *aead)
{
    uint8_t key[SR_AEAD_KEY_MAX];
    const uint8_t *use = side->secret;
    if (k->tls13) {
        if (!expand(k, side->secret, "key", key, key_len(k)) ||
            !expand(k, side->secret, "iv", side->iv, NONCE))
            return false;
        use = key;
    }
    bool begun = sr_aead_key(aead, use);
    OPENSSL_cleanse(key, sizeof key);
    return begun;
}

static void contexts_free(sr_records *r)
{
    sr_aead_free(&r->in);
    sr_aead_free(&r->out);
    if (r->keyed.next)
        sr_link_remove(&r->keyed);
}

static void note_use(sr_records *r, int64_t now)
{
    r->used_at = now;
    sr_link_append(&keyed, &r->keyed);
}

/* False: the cipher is unknown, or there is no memory. */
static bool contexts_make(sr_records *r)
{
    sr_record_keys *k = &r->keys;
    bool made = sr_aead_new(&r->in, k->aead, false) && sr_aead_new(&r->out, k->aead, true) &&
                side_begin(k, &k->in, &r->in) && side_begin(k, &k->out, &r->out);
    if (!r->keyed.next)
        sr_link_init(&r->keyed);
    if (made)
        note_use(r, sr_clock_monotonic_seconds());
    else
        contexts_free(r);
    return made;
}

/*
 * Called when the peer has sent something: it has contexts then, and the silent have none. False: no memory.
 */
static bool contexts_use(sr_records *r)
{
    int64_t now = sr_clock_monotonic_seconds();
    if (r->in.ctx && r->used_at != now)
        note_use(r, now);
    while (!sr_link_alone(&keyed)) {
        sr_records *oldest = SR_LIST_ENTRY(keyed.next, sr_records, keyed);
        if (now - oldest->used_at <= RESTS)
            break;
        contexts_free(oldest);
    }
    return r->in.ctx || contexts_make(r);
}

/* The next secret of a side (RFC 8446 7.2). */
static bool side_next(sr_records *r, sr_record_side *side, sr_aead *aead)
{
    uint8_t next[SR_SECRET_MAX];
    bool made = expand(&r->keys, side->secret, "traffic upd", next, hash_len(&r->keys));
    if (made)
        memcpy(side->secret, next, hash_len(&r->keys));
    OPENSSL_cleanse(next, sizeof next);
    side->seq = 0;
    return made && side_begin(&r->keys, side, aead);
}

bool sr_records_derive12(sr_record_keys *k, const uint8_t *master, size_t len, const uint8_t client[32],
                         const uint8_t server[32])
{
    static EVP_KDF *prf;
    if (!prf)
        prf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
    EVP_KDF_CTX *ctx = prf ? EVP_KDF_CTX_new(prf) : NULL;
    size_t key = key_len(k), iv = has_explicit(k) ? 4 : NONCE;
    uint8_t seed[13 + 64], block[2 * (32 + NONCE)], *at = block;
    memcpy(seed, "key expansion", 13);
    memcpy(seed + 13, server, 32);
    memcpy(seed + 13 + 32, client, 32);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, k->sha384 ? "SHA384" : "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)(uintptr_t)master, len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof seed),
        OSSL_PARAM_construct_end(),
    };
    bool made = ctx && EVP_KDF_derive(ctx, block, 2 * (key + iv), params) == 1;
    EVP_KDF_CTX_free(ctx);
    memcpy(k->in.secret, at, key);
    memcpy(k->out.secret, at += key, key);
    memcpy(k->in.iv, at += key, iv);
    memcpy(k->out.iv, at + iv, iv);
    OPENSSL_cleanse(block, sizeof block);
    return made;
}

/* --- one record --- */

/* The nonce of a record, and the bytes that are authenticated with it. */
typedef struct aead_input {
    uint8_t nonce[NONCE], aad[13];
    size_t aad_len;
} aead_input;

/* As htobe64 of <endian.h>, which not all systems have. */
static uint64_t big_endian(uint64_t n)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(n) : n;
}

/* `explicit`: those bytes of the record, NULL if it has none. `len`: of the plaintext, for TLS 1.2. */
static void aead_input_set(aead_input *f, const sr_record_keys *k, const sr_record_side *side,
                           const uint8_t header[HEADER], const uint8_t *explicit, size_t len)
{
    uint64_t seq = big_endian(side->seq), last;
    memcpy(f->nonce, side->iv, NONCE);
    if (explicit) {
        memcpy(f->nonce + 4, explicit, EXPLICIT);
    } else {
        memcpy(&last, f->nonce + 4, sizeof last);
        last ^= seq;
        memcpy(f->nonce + 4, &last, sizeof last);
    }
    if (k->tls13) {
        memcpy(f->aad, header, HEADER);
        f->aad_len = HEADER;
        return;
    }
    memcpy(f->aad, &seq, sizeof seq);
    memcpy(f->aad + 8, header, 3);
    f->aad[11] = (uint8_t)(len >> 8);
    f->aad[12] = (uint8_t)len;
    f->aad_len = 13;
}

static bool wire_reserve(sr_records *r, size_t more)
{
    if (!r->wire.data && spare.data) {
        r->wire = spare;
        spare = (sr_buffer){0};
    }
    return sr_buffer_reserve(&r->wire, more);
}

bool sr_records_put(sr_records *r, const void *at, size_t len)
{
    return wire_reserve(r, len) && sr_buffer_add(&r->wire, at, len);
}

/* Appends a record with the next `len` bytes to wire. 0 or errno. */
static int seal(sr_records *r, uint8_t type, sr_cursor *from, size_t len)
{
    const sr_record_keys *k = &r->keys;
    sr_record_side *side = &r->keys.out;
    size_t before = has_explicit(k) ? EXPLICIT : 0, body = before + len + (k->tls13 ? 1 : 0) + TAG;
    if (!wire_reserve(r, HEADER + body) || (!r->out.ctx && !contexts_make(r)))
        return ENOMEM;
    uint8_t *at = (uint8_t *)r->wire.data + r->wire.end, *header = at;
    *at++ = k->tls13 ? APPLICATION : type;
    *at++ = 3;
    *at++ = 3;
    *at++ = (uint8_t)(body >> 8);
    *at++ = (uint8_t)body;
    if (before) {
        uint64_t seq = big_endian(side->seq);
        memcpy(at, &seq, sizeof seq);
    }
    aead_input f;
    aead_input_set(&f, k, side, header, before ? at : NULL, len);
    at += before;
    bool fine = sr_aead_begin(&r->out, f.nonce, f.aad, f.aad_len), gathers = len <= GATHERED;
    uint8_t *text = at;
    if (gathers)
        at += sr_cursor_copy(from, at, len);
    while (!gathers && fine && len) {
        sr_bytes piece = sr_cursor_here(from);
        size_t some = piece.len < len ? piece.len : len;
        fine = sr_aead_add(&r->out, at, piece.at, some);
        at += some;
        len -= some;
        sr_cursor_skip(from, some);
    }
    if (gathers && k->tls13)
        *at++ = type;
    if (gathers)
        fine = fine && sr_aead_add(&r->out, text, text, (size_t)(at - text));
    else if (fine && k->tls13)
        fine = sr_aead_add(&r->out, at++, &type, 1);
    if (!fine || !sr_aead_seal(&r->out, at)) {
        ERR_clear_error();
        return EPROTO;
    }
    r->wire.end += HEADER + body;
    side->seq++;
    return 0;
}

static int seal_bytes(sr_records *r, uint8_t type, const void *at, size_t len)
{
    struct iovec iov = {(void *)(uintptr_t)at, len};
    sr_cursor c = {&iov, 1, 0};
    return seal(r, type, &c, len);
}

static size_t overhead(const sr_record_keys *k)
{
    return TAG + (has_explicit(k) ? EXPLICIT : 0);
}

/*
 * Opens a record to `to`, which has room for its body without the overhead. True: *type and *len say what it
 * has. False: *alert says what to tell the peer.
 */
static bool open_record(sr_records *r, const uint8_t *header, size_t body, uint8_t *to, uint8_t *type,
                        size_t *len, uint8_t *alert)
{
    const sr_record_keys *k = &r->keys;
    sr_record_side *side = &r->keys.in;
    const uint8_t *at = header + HEADER, *explicit = has_explicit(k) ? at : NULL;
    *type = header[0];
    *alert =
        k->tls13 && *type != APPLICATION ? UNEXPECTED : BAD_MAC; /* ChangeCipherSpec is too short for both */
    if (*alert == UNEXPECTED || body < overhead(k) + (k->tls13 ? 1 : 0))
        return false;
    *len = body - overhead(k);
    at += explicit ? EXPLICIT : 0;
    aead_input f;
    aead_input_set(&f, k, side, header, explicit, *len);
    bool fine = sr_aead_begin(&r->in, f.nonce, f.aad, f.aad_len) && sr_aead_add(&r->in, to, at, *len) &&
                sr_aead_open(&r->in, at + *len);
    if (!fine) {
        ERR_clear_error();
        OPENSSL_cleanse(to, *len); /* nobody vouches for it */
        return false;
    }
    side->seq++;
    if (k->tls13) { /* the type is behind the bytes, and zeros may follow */
        while (*len && !to[*len - 1])
            --*len;
        *alert = UNEXPECTED;
        if (!*len)
            return false;
        *type = to[--*len];
    }
    *alert = OVERFLOWS;
    return *len <= PLAIN_MAX;
}

/* --- the socket --- */

/* The memory of wire goes back when it is empty; what a slow peer leaves in it gets no more than it needs. */
static void wire_rest(sr_records *r)
{
    size_t left = sr_buffer_len(&r->wire);
    sr_buffer small = {0};
    if (!r->wire.data || (left && (r->wire.cap < 2 * left || !sr_buffer_reserve(&small, left))))
        return;
    if (left)
        sr_buffer_add(&small, sr_buffer_at(&r->wire), left);
    sr_buffer_reset(&r->wire);
    if (spare.data || r->wire.cap > SPARE_MAX)
        sr_buffer_free(&r->wire);
    else
        spare = r->wire;
    r->wire = small;
}

int sr_records_flush(sr_records *r, int flags)
{
    int err = 0;
    while (!err && sr_buffer_len(&r->wire)) {
        ssize_t n = send(r->socket, sr_buffer_at(&r->wire), sr_buffer_len(&r->wire),
                         flags | MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            sr_buffer_take(&r->wire, (size_t)n);
        else if (errno != EINTR)
            err = errno == EWOULDBLOCK ? EAGAIN : errno;
    }
    if (err && err != EAGAIN)
        r->failed = true;
    wire_rest(r);
    return err;
}

static int alert(sr_records *r, uint8_t level, uint8_t what)
{
    uint8_t bytes[2] = {level, what};
    return seal_bytes(r, ALERT, bytes, sizeof bytes);
}

/* Tells the peer what is wrong; nothing is read or written any more. Returns errno. */
static int fail(sr_records *r, uint8_t what)
{
    if (!r->ended && !alert(r, FATAL, what))
        sr_records_flush(r, 0); /* as far as the socket takes it */
    r->failed = true;
    return EPROTO;
}

/* --- reading --- */

/*
 * A part of a KeyUpdate, the only message that a client may send. It may come in several records (RFC 8446
 * 5.1), but keys change behind it, so nothing else may share the last of them.
 */
static int key_update(sr_records *r, const uint8_t *at, size_t len)
{
    static const uint8_t ours[SR_KEY_UPDATE_BYTES] = {KEY_UPDATE, 0, 0, 1, 0};
    uint8_t *part = r->part;
    size_t room = sizeof r->part - r->n_part, some = len < room ? len : room;
    memcpy(part + r->n_part, at, some);
    r->n_part += (uint8_t)some;
    if (!len || part[0] != KEY_UPDATE)
        return fail(r, UNEXPECTED);
    if (r->n_part >= 4 && memcmp(part, ours, 4) != 0)
        return fail(r, DECODE);
    if (len > room)
        return fail(r, UNEXPECTED);
    if (r->n_part < sizeof r->part)
        return 0;
    bool asked = part[4];
    if (part[4] > 1)
        return fail(r, ILLEGAL);
    r->n_part = 0;
    if (!side_next(r, &r->keys.in, &r->in))
        return ENOMEM;
    if (!asked || r->ended)
        return 0;
    int err = seal_bytes(r, HANDSHAKE, ours, sizeof ours);
    return err ? err : side_next(r, &r->keys.out, &r->out) ? 0 : ENOMEM;
}

/* A record that has no bytes for the caller. 0 or errno. */
static int control(sr_records *r, uint8_t type, const uint8_t *at, size_t len)
{
    bool tls13 = r->keys.tls13;
    if (++r->controls > SR_CONTROLS_MAX || (r->n_part && type != HANDSHAKE))
        return fail(r, UNEXPECTED);
    if (type == APPLICATION)
        return 0; /* empty */
    if (type == ALERT && len == 2) {
        if (at[1] == CLOSE_NOTIFY) {
            r->closed = true;
            return 0;
        }
        if (tls13 ? at[1] == CANCELED : at[0] == WARNING)
            return 0;
        r->failed = true; /* the peer has given up */
        return ECONNRESET;
    }
    if (type == HANDSHAKE && tls13)
        return key_update(r, at, len);
    if (type == HANDSHAKE && len && at[0] == CLIENT_HELLO) /* renegotiation: no, but let us go on */
        return r->ended ? 0 : alert(r, WARNING, NO_RENEGOTIATION);
    return fail(r, type == ALERT && len ? DECODE : UNEXPECTED); /* RFC 8446 5.1: none is empty */
}

/* The length of the record at the front, header included. 0: it is not complete. */
static size_t complete(const uint8_t *at, size_t len)
{
    size_t all = len < HEADER ? 0 : HEADER + ((size_t)at[3] << 8 | at[4]);
    return all <= len ? all : 0;
}

/*
 * Opens what `at` has, as far as there is room at `to`. 0 or errno; *used and *got are what went in and out.
 */
static int open_all(sr_records *r, const uint8_t *at, size_t len, size_t *used, uint8_t *to, size_t room,
                    size_t *got)
{
    for (int records = 0; records < SR_RECORDS_MAX && len - *used >= HEADER && !r->closed; records++) {
        const uint8_t *header = at + *used;
        size_t body = (size_t)header[3] << 8 | header[4], more = 0;
        uint8_t type = 0, why = 0;
        if (header[1] != 3 || body > BODY_MAX)
            return fail(r, header[1] != 3 ? BAD_VERSION : OVERFLOWS);
        if (len - *used - HEADER < body)
            return 0;
        size_t most = body > overhead(&r->keys) ? body - overhead(&r->keys) : 0;
        bool direct = most <= room - *got;
        if (!direct && *got)
            return 0; /* the next read */
        uint8_t *here = direct ? to + *got : opened;
        if (!open_record(r, header, body, here, &type, &more, &why))
            return fail(r, why);
        *used += HEADER + body;
        if (type != APPLICATION || !more) {
            int err = control(r, type, here, more);
            if (err)
                return err;
            continue;
        }
        if (r->n_part) /* nothing may come between the parts of a message */
            return fail(r, UNEXPECTED);
        r->controls = 0;
        if (!direct) {
            size_t some = more < room ? more : room;
            memcpy(to, opened, some);
            *got = some;
            return sr_buffer_add(&r->plain, opened + some, more - some) ? 0 : ENOMEM;
        }
        *got += more;
    }
    return 0;
}

/* Reads from the socket, unless a whole record is here. 0 or errno; EAGAIN: nothing has come. */
static int receive(sr_records *r, size_t *have, size_t room)
{
    size_t most = room < BODY_MAX ? BODY_MAX : room;
    most = most + HEADER < INPUT ? most + HEADER : INPUT;
    if (complete(input, *have) || *have >= most)
        return 0;
    ssize_t n;
    do
        n = recv(r->socket, input + *have, most - *have, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *have += (size_t)n;
        return 0;
    }
    if (n < 0)
        return errno == EWOULDBLOCK ? EAGAIN : errno;
    r->closed = true; /* maybe without close_notify: HTTP says itself what is missing */
    return 0;
}

/* Gets bytes for the caller. 0 or errno; nothing but 0: the peer has ended. */
static int fetch(sr_records *r, void *to, size_t room, size_t *got)
{
    size_t have = sr_buffer_len(&r->raw), used = 0;
    memcpy(input, have ? sr_buffer_at(&r->raw) : "", have);
    int err = receive(r, &have, room);
    if (err == EAGAIN && have < HEADER)
        return err; /* raw is as it was */
    if (!err || err == EAGAIN)
        err = r->closed || contexts_use(r) ? 0 : ENOMEM;
    if (err) {
        r->failed = true;
        return err;
    }
    err = r->closed ? 0 : open_all(r, input, have, &used, to, room, got);
    if (r->raw.cap > KEPT &&
        r->raw.cap / 4 > have - used) /* what is left, a part of a record, may stay for long */
        sr_buffer_free(&r->raw);
    else
        sr_buffer_reset(&r->raw);
    if (!err && !r->closed && !sr_buffer_add(&r->raw, input + used, have - used))
        err = ENOMEM;
    if (r->raw.data && !sr_buffer_len(&r->raw))
        sr_buffer_free(&r->raw);
    if (err)
        r->failed = true;
    return err ? err : *got || r->closed ? 0 : EAGAIN;
}

/*
 * Whether nothing is read until the socket has taken more: the peer makes us reply, and does not read it.
 * What the caller has written is no reply: a peer may well want to be heard before it reads that.
 */
static bool records_clogged(const sr_transport *base)
{
    const sr_records *r = (const sr_records *)base;
    return sr_buffer_len(&r->wire) > SR_WIRE_MAX + (r->owed ? OWED_MAX : 0);
}

static ssize_t records_read(sr_transport *base, int socket, void *to, size_t len)
{
    sr_records *r = of(base);
    size_t got = sr_buffer_len(&r->plain);
    int err = sr_buffer_len(&r->wire) ? sr_records_flush(r, 0) : 0;
    (void)socket;
    if (err == EAGAIN && !records_clogged(base))
        err = 0;
    if (err || r->failed) {
        errno = err ? err : ECONNRESET;
        return -1;
    }
    if (got) {
        got = got < len ? got : len;
        memcpy(to, sr_buffer_at(&r->plain), got);
        sr_buffer_take(&r->plain, got);
        if (!sr_buffer_len(&r->plain))
            sr_buffer_free(&r->plain);
        return (ssize_t)got;
    }
    if (!r->closed)
        err = fetch(r, to, len, &got);
    if (sr_buffer_len(&r->wire) && !r->failed)
        sr_records_flush(r, 0); /* an answer to a KeyUpdate, for example */
    if (got)
        return (ssize_t)got;
    if (err) {
        errno = err;
        return -1;
    }
    r->told = true;
    return 0;
}

static bool records_holds(const sr_transport *base)
{
    const sr_records *r = (const sr_records *)base;
    return !records_clogged(base) &&
           (sr_buffer_len(&r->plain) || (r->closed && !r->told) ||
            (sr_buffer_len(&r->raw) &&
             complete((const uint8_t *)sr_buffer_at(&r->raw), sr_buffer_len(&r->raw))));
}

static ssize_t records_peek(sr_transport *base, int socket)
{
    static uint8_t looked[BODY_MAX];
    sr_records *r = of(base);
    size_t got = 0;
    (void)socket;
    if (sr_buffer_len(&r->plain))
        return 1;
    if (r->failed) {
        errno = ECONNRESET;
        return -1;
    }
    if (r->closed)
        return 0;
    int err = fetch(r, looked, sizeof looked, &got);
    if (got && !sr_buffer_add(&r->plain, looked, got)) {
        r->failed = true; /* they are lost */
        err = ENOMEM;
    }
    if (sr_buffer_len(&r->wire) && !r->failed)
        sr_records_flush(r, 0);
    if (got && err != ENOMEM)
        return 1;
    errno = err;
    return err ? -1 : 0;
}

/* --- writing --- */

size_t sr_records_repeated(sr_records *r, sr_cursor *c)
{
    size_t offered = sr_cursor_left(c, r->owed), some = r->owed < offered ? r->owed : offered;
    r->owed -= some;
    sr_cursor_skip(c, some);
    return some;
}

static ssize_t records_write(sr_transport *base, int socket, const struct iovec *iov, int n, int flags)
{
    static const uint8_t update[] = {KEY_UPDATE, 0, 0, 1, 0};
    sr_records *r = of(base);
    sr_cursor c = {iov, n, 0};
    size_t taken = 0;
    int err = r->failed || r->ended ? EPIPE : sr_buffer_len(&r->wire) ? sr_records_flush(r, flags) : 0;
    (void)socket;
    if (!err && r->owed)
        taken = sr_records_repeated(r, &c);
    while (!err && sr_cursor_left(&c, PLAIN_MAX)) {
        size_t batch = 0, len;
        if (r->keys.tls13 && r->keys.out.seq >= UPDATE_AFTER &&
            (seal_bytes(r, HANDSHAKE, update, sizeof update) || !side_next(r, &r->keys.out, &r->out)))
            err = ENOMEM;
        while (!err && batch < BATCH && (len = sr_cursor_left(&c, PLAIN_MAX))) {
            len = len < r->keys.most ? len : r->keys.most;
            err = seal(r, APPLICATION, &c, len);
            batch += err ? 0 : len;
        }
        if (err) {
            r->failed = true; /* a record may be half made */
            break;
        }
        err = sr_records_flush(r, flags);
        if (err)
            r->owed = batch;
        else
            taken += batch;
    }
    if (!err || (err == EAGAIN && taken))
        return (ssize_t)taken;
    errno = err;
    return -1;
}

bool sr_records_unsent(const sr_transport *base)
{
    const sr_records *r = (const sr_records *)base;
    return !r->failed &&
           sr_buffer_len(&r->wire) > 0; /* an alert that the socket has not taken stays unsaid */
}

static int records_end(sr_transport *base, int socket)
{
    sr_records *r = of(base);
    (void)socket;
    if (r->failed)
        return 0;
    if (!r->ended)
        alert(r, WARNING, CLOSE_NOTIFY);
    r->ended = true;
    return sr_records_flush(r, 0);
}

sr_bytes sr_records_facts(const sr_transport *base)
{
    const sr_records *r = (const sr_records *)base;
    return sr_bytes_of(sr_buffer_at(&r->facts), sr_buffer_len(&r->facts));
}

static void records_free(sr_transport *base)
{
    sr_records_wipe(of(base));
    free(base);
}

/* --- passing on --- */

typedef struct packed {
    sr_record_keys keys;
    uint32_t raw, plain, facts; /* bytes of each, which follow */
    uint8_t closed, controls, n_part, part[SR_KEY_UPDATE_BYTES], unused[4];
} packed;

static bool records_pack(const sr_transport *base, sr_buffer *to)
{
    const sr_records *r = (const sr_records *)base;
    packed p = {.keys = r->keys,
                .raw = (uint32_t)sr_buffer_len(&r->raw),
                .plain = (uint32_t)sr_buffer_len(&r->plain),
                .facts = (uint32_t)sr_buffer_len(&r->facts),
                .closed = r->closed,
                .controls = r->controls,
                .n_part = r->n_part};
    memcpy(p.part, r->part, r->n_part);
    if (r->failed || r->ended || r->owed || sr_buffer_len(&r->wire))
        return false;
    bool made =
        sr_buffer_reserve(to, sizeof p + p.raw + p.plain + p.facts) && /* at once: no copy is left behind */
        sr_buffer_add(to, &p, sizeof p) && sr_buffer_add(to, sr_buffer_at(&r->raw), p.raw) &&
        sr_buffer_add(to, sr_buffer_at(&r->plain), p.plain) &&
        sr_buffer_add(to, sr_buffer_at(&r->facts), p.facts);
    OPENSSL_cleanse(&p, sizeof p);
    return made;
}

static const sr_transport_ops ops = {
    .read = records_read,
    .write = records_write,
    .holds = records_holds,
    .unsent = sr_records_unsent,
    .clogged = records_clogged,
    .peek = records_peek,
    .end = records_end,
    .facts = sr_records_facts,
    .pack = records_pack,
    .free = records_free,
};

bool sr_records_begin(sr_records *r, const sr_record_keys *keys)
{
    if (keys->aead >= SR_AEADS || !keys->most || keys->most > PLAIN_MAX)
        return false;
    r->keys = *keys;
    bool made = contexts_make(r);
    if (made) {
        r->base.ops = &ops;
    } else {
        OPENSSL_cleanse(&r->keys, sizeof r->keys);
        ERR_clear_error();
    }
    return made;
}

void sr_records_wipe(sr_records *r)
{
    contexts_free(r);
    OPENSSL_cleanse(&r->keys, sizeof r->keys);
    sr_buffer_free(&r->wire);
    sr_buffer_free(&r->raw);
    sr_buffer_free(&r->plain);
    sr_buffer_free(&r->facts);
}

sr_transport *sr_records_unpack(sr_bytes from, int socket)
{
    packed p;
    if (from.len < sizeof p)
        return NULL;
    memcpy(&p, from.at, sizeof p);
    if (p.raw > INPUT || p.n_part >= sizeof p.part)
        return NULL;
    sr_records *r = calloc(1, sizeof *r);
    const char *at = from.at + sizeof p;
    bool whole = from.len - sizeof p == (size_t)p.raw + p.plain + p.facts;
    bool made = whole && r && sr_buffer_add(&r->raw, at, p.raw) &&
                sr_buffer_add(&r->plain, at + p.raw, p.plain) &&
                sr_buffer_add(&r->facts, at + p.raw + p.plain, p.facts) && sr_records_begin(r, &p.keys);
    if (made) {
        r->socket = socket;
        r->closed = p.closed;
        r->controls = p.controls;
        r->n_part = p.n_part;
        memcpy(r->part, p.part, p.n_part);
    }
    OPENSSL_cleanse(&p, sizeof p);
    if (made)
        return &r->base;
    if (r)
        sr_records_wipe(r);
    free(r);
    return NULL;
}

#endif
