#ifndef SR_AEAD_H
#define SR_AEAD_H
/*
 * aead: authenticated encryption (RFC 5116) of one record after the other, with a key and many nonces.
 *
 * The ciphers are those of OpenSSL, by EVP: one context for each direction keeps its key, and takes a nonce
 * and a tag for each record. A cipher that no provider offers is unknown here: that of FIPS has no ChaCha20.
 *
 * For the files of this folder only. Owner: the caller of sr_aead_new. Thread: one at a time.
 * Order: sr_aead_begin, sr_aead_add any number of times, then sr_aead_seal or sr_aead_open. After a failure
 * the next sr_aead_begin starts anew. A nonce must not come twice with a key.
 */
#ifdef SR_TLS

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SR_AEAD_TAG = 16, SR_AEAD_NONCE = 12, SR_AEAD_KEY_MAX = 32 };

typedef enum sr_aead_kind { SR_AEAD_AES128, SR_AEAD_AES256, SR_AEAD_CHACHA, SR_AEADS } sr_aead_kind;

typedef struct sr_aead {
    struct evp_cipher_ctx_st *ctx; /* EVP_CIPHER_CTX; NULL: there is none */
    bool seals;
} sr_aead;

/* Bytes of a key. */
size_t sr_aead_key_len(sr_aead_kind kind);

/*
 * For one direction: `seals` encrypts. False: the cipher is unknown, or there is no memory; then a->ctx is
 * NULL.
 */
bool sr_aead_new(sr_aead *a, sr_aead_kind kind, bool seals);

/* The key is wiped. a->ctx may be NULL. */
void sr_aead_free(sr_aead *a);

/* Takes another key, of sr_aead_key_len bytes. */
bool sr_aead_key(sr_aead *a, const uint8_t *key);

/* Begins a record; `aad` is what is authenticated with it. */
bool sr_aead_begin(sr_aead *a, const uint8_t nonce[SR_AEAD_NONCE], const uint8_t *aad, size_t len);

/* The next bytes of it, from `from` to `to`, which may be the same place, but must not overlap otherwise. */
bool sr_aead_add(sr_aead *a, uint8_t *to, const void *from, size_t len);

/* Ends a record, whose tag is written to `tag`. */
bool sr_aead_seal(sr_aead *a, uint8_t tag[SR_AEAD_TAG]);

/* Ends a record. False: this is not its tag, so nobody vouches for the bytes. */
bool sr_aead_open(sr_aead *a, const uint8_t tag[SR_AEAD_TAG]);

#endif
#endif
