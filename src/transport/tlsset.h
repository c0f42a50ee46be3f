#ifndef SR_TLSSET_H
#define SR_TLSSET_H
/*
 * tlsset: the contexts of OpenSSL that a set of keys makes: one for each group of certificates that stand for
 * the same name, so that RSA and ECDSA stand side by side. SNI chooses between them; the first certificate of
 * the set is for clients that name none, or one that is unknown.
 *
 * For the files of this folder only, which are those that know OpenSSL.
 */
#include "tls.h"

#include <openssl/ssl.h>

SSL_CTX *sr_tls_context(const sr_tls *tls); /* for a new connection; NULL: no set is loaded */

/* A certificate with its chain and key. */
typedef struct sr_pair {
    X509 *cert;
    STACK_OF(X509) * chain; /* may be empty */
    EVP_PKEY *key;
} sr_pair;

/* In which text the fault is, or in neither. */
typedef enum sr_pair_fault { SR_PAIR_FINE, SR_PAIR_CERT, SR_PAIR_KEY, SR_PAIR_STRANGERS } sr_pair_fault;

/* Reads PEM texts. Unless it is SR_PAIR_FINE, *pair is empty, and `why` says what is wrong. */
sr_pair_fault sr_pair_read(sr_pair *pair, sr_bytes cert, sr_bytes key, char why[SR_KEYSET_WHY]);
void sr_pair_free(sr_pair *pair);

/* The names that a certificate is valid for, in lower case: DNS names of its extension, else its CN. */
typedef struct sr_names {
    char **of; /* owned */
    size_t n;
} sr_names;

bool sr_names_read(sr_names *names, X509 *cert); /* false: no memory */
void sr_names_free(sr_names *names);

#endif
