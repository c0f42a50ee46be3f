#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef SR_TLS

#include "tlsset.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Mozilla, "intermediate", version 5.7 */
#define CIPHERS                                                                                              \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-"     \
    "AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERS_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:" GROUPS_FIPS
#define GROUPS_FIPS "P-256:P-384" /* a provider of FIPS has no X25519 */

enum {
    KINDS = 3, /* of keys: ECDSA, RSA, others */
    PAIRS_MAX = 4096,
    CLIENT_CHAIN_MAX =
        32 * 1024, /* bytes. OpenSSL takes 100 KiB: 100 certificates, which take 20 ms to read */
};
enum {
    TICKET_IV = 16, /* AES-CBC */
    HOST = 255,     /* of a host; DNS has no longer ones */
    PROOF = 32,     /* SHA-256; as long as the context of a session may be */
};

/* The certificates for one name, the first of each kind of key; -1: there is none. */
typedef struct group {
    int pairs[KINDS];
    SSL_CTX *ctx;
} group;

typedef struct named {
    char *name;
    uint32_t group;
} named;

typedef struct set {
    sr_pair *pairs;
    sr_names *names; /* of each pair */
    size_t n_pairs, room;
    group *groups;
    size_t n_groups;
    named *index; /* sorted by name; the texts belong to `names` */
    size_t n_index;
    sr_ticket_key tickets[SR_TICKETS_MAX];
    size_t n_tickets;
    char *ciphers, *min, *verify;
    sr_bytes ca, crls;    /* in the run, while the contexts are made */
    X509_STORE *clients;  /* of all contexts; NULL: clients are not asked for certificates */
    int64_t crls_until;   /* when the first CRL expires; 0: none does */
    uint8_t proof[PROOF]; /* what a client has to prove; see session_context */
} set;

struct sr_tls {
    set *now; /* NULL: none is loaded */
    bool h2;  /* clients may choose HTTP/2 */
};

bool sr_tls_built(void)
{
    return true;
}

static void set_free(set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_groups; i++)
        SSL_CTX_free(s->groups[i].ctx); /* connections have references of their own */
    for (size_t i = 0; i < s->n_pairs; i++) {
        sr_pair_free(&s->pairs[i]);
        sr_names_free(&s->names[i]);
    }
    OPENSSL_cleanse(s->tickets, sizeof s->tickets);
    X509_STORE_free(s->clients);
    free(s->pairs);
    free(s->names);
    free(s->groups);
    free(s->index);
    free(s->ciphers);
    free(s->min);
    free(s->verify);
    free(s);
}

sr_tls *sr_tls_new(bool h2)
{
    sr_tls *tls = calloc(1, sizeof *tls);
    if (tls)
        tls->h2 = h2;
    return tls;
}

void sr_tls_free(sr_tls *tls)
{
    if (tls)
        set_free(tls->now);
    free(tls);
}

SSL_CTX *sr_tls_context(const sr_tls *tls)
{
    return tls && tls->now ? tls->now->groups[0].ctx : NULL;
}

static bool fail(char why[SR_KEYSET_WHY], const char *text)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(why, SR_KEYSET_WHY, reason ? "%s: %s" : "%s", text, reason);
    ERR_clear_error();
    return false;
}

/* --- which certificate --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static const named *find(const set *s, const char *name)
{
    named key = {.name = (char *)(uintptr_t)name};
    return bsearch(&key, s->index, s->n_index, sizeof *s->index, by_name);
}

/* A name as `index` has it: in lower case, without a dot at its end. 0: not a valid host name */
static size_t name_take(char name[HOST + 1], const char *from, size_t len)
{
    while (len && from[len - 1] == '.')
        len--;
    if (len > HOST)
        len = 0;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)sr_lower((unsigned char)from[i]);
    name[len] = 0;
    return len;
}

static int choose(SSL *ssl, int *alert, void *arg)
{
    const set *s = ((sr_tls *)arg)->now;
    const char *asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    char name[HOST + 1];
    (void)alert;
    if (!s || !asked || !name_take(name, asked, strlen(asked)))
        return SSL_TLSEXT_ERR_NOACK;
    const named *found = find(s, name);
    char *dot = strchr(name, '.');
    if (!found && dot && dot > name) { /* RFC 6125 6.4.3: a star stands for one label, the first */
        dot[-1] = '*';
        found = find(s, dot - 1);
    }
    if (!found)
        return SSL_TLSEXT_ERR_OK;
    SSL_CTX *ctx = s->groups[found->group].ctx;
    if (SSL_get_SSL_CTX(ssl) != ctx) {
        SSL_set_SSL_CTX(ssl, ctx);
        /*
         * A connection from before a reload gets tickets of the new set by this. It has to prove as much as
         * others do, whose certificates they stand for.
         */
        SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), NULL);
    }
    return SSL_TLSEXT_ERR_OK;
}

static int alpn(SSL *ssl, const unsigned char **out, unsigned char *len, const unsigned char *offered,
                unsigned int bytes, void *arg)
{
    static const unsigned char all[] = "\x02h2\x08http/1.1\x08http/1.0";
    const sr_tls *tls = arg;
    const unsigned skip = tls->h2 ? 0 : 3;
    (void)ssl;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, len, all + skip, sizeof all - 1 - skip, offered, bytes) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* RFC 7301 3.2 */
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* --- tickets --- */

/*
 * The newest that is valid; if none is, as the clock was put back, the oldest: without one no handshake
 * succeeds.
 */
static const sr_ticket_key *ticket_now(const set *s, int64_t now)
{
    const sr_ticket_key *newest = NULL, *oldest = NULL;
    for (size_t i = 0; i < s->n_tickets; i++) {
        const sr_ticket_key *k = &s->tickets[i];
        if (k->since <= now && (!newest || k->since > newest->since))
            newest = k;
        if (!oldest || k->since < oldest->since)
            oldest = k;
    }
    return newest ? newest : oldest;
}

/* Fetched once: EVP_aes_256_cbc() would be looked up each time. */
static const EVP_CIPHER *ticket_cipher(void)
{
    static EVP_CIPHER *fetched;
    if (!fetched)
        fetched = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    return fetched;
}

static bool ticket_use(EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, const sr_ticket_key *key,
                       const unsigned char *iv, bool make)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)key->mac, sizeof key->mac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_end(),
    };
    return ticket_cipher() && EVP_CipherInit_ex(cipher, ticket_cipher(), NULL, key->cipher, iv, make) == 1 &&
           EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* 1: fine; 2: fine, and the client is to get another ticket; 0: no such key; -1: no ticket can be made. */
static int ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                  int make)
{
    const sr_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const set *s = tls->now;
    int64_t now = time(NULL);
    const sr_ticket_key *newest = s ? ticket_now(s, now) : NULL;
    if (make) {
        if (!newest || RAND_bytes(iv, TICKET_IV) != 1)
            return -1;
        memcpy(name, newest->name, sizeof newest->name);
        return ticket_use(cipher, mac, newest, iv, true) ? 1 : -1;
    }
    for (size_t i = 0; s && i < s->n_tickets; i++) {
        const sr_ticket_key *key = &s->tickets[i];
        if (memcmp(name, key->name, sizeof key->name) != 0 || now - key->since > 2 * SR_TICKET_SECONDS)
            continue;
        if (!ticket_use(cipher, mac, key, iv, false))
            return -1;
        /* in TLS 1.3 a client uses a ticket once, and gets others with it */
        return key == newest && SSL_version(ssl) < TLS1_3_VERSION ? 1 : 2;
    }
    return 0;
}

/*
 * OpenSSL looks at the dates of a client's certificate in full handshakes only, and each resumption gets
 * another ticket: without this, a session would outlive the certificate for ever.
 */
static SSL_TICKET_RETURN ticket_dates(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t len,
                                      SSL_TICKET_STATUS status, void *arg)
{
    const sr_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const set *s = tls->now;
    (void)name;
    (void)len;
    (void)arg;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    const X509 *cert = SSL_SESSION_get0_peer(session);
    if (cert && ASN1_TIME_cmp_time_t(X509_get0_notAfter(cert), time(NULL)) <= 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    if (cert && s && s->crls_until &&
        s->crls_until <= time(NULL)) /* the whole handshake says whom that concerns */
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* --- making contexts --- */

/*
 * A session belongs to what its client had to prove, and to the name that it has asked for (hello): with
 * other CAs or CRLs, or where a certificate has become required, the client has to begin anew.
 */
static bool session_context(SSL_CTX *ctx, set *s)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    const char *verify = s->verify ? s->verify : "";
    bool made = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(md, verify, strlen(verify) + 1) == 1 &&
                (!s->ca.len || EVP_DigestUpdate(md, s->ca.at, s->ca.len) == 1) &&
                (!s->crls.len || EVP_DigestUpdate(md, s->crls.at, s->crls.len) == 1) &&
                EVP_DigestFinal_ex(md, s->proof, NULL) == 1 &&
                SSL_CTX_set_session_id_context(ctx, s->proof, sizeof s->proof) == 1;
    EVP_MD_CTX_free(md);
    return made;
}

/*
 * The host_name of the extension (RFC 6066 3), which has a list of one; empty: there is none, or OpenSSL will
 * refuse it.
 */
static sr_bytes host_name(SSL *ssl)
{
    enum { LIST = 2, TYPE = 1, LENGTH = 2, BEFORE = LIST + TYPE + LENGTH };
    const unsigned char *at;
    size_t len;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &at, &len) != 1 || len < BEFORE ||
        at[LIST] != TLSEXT_NAMETYPE_host_name)
        return (sr_bytes){0};
    size_t of_name = (size_t)at[LIST + TYPE] << 8 | at[LIST + TYPE + 1];
    return of_name == len - BEFORE ? sr_bytes_of((const char *)at + BEFORE, of_name) : (sr_bytes){0};
}

/*
 * RFC 6066 3: a session is not resumed under another name. OpenSSL sees to that in TLS 1.3; in 1.2 it looks
 * at the ticket before it has read the name.
 */
static int hello(SSL *ssl, int *alert, void *arg)
{
    const set *s = ((sr_tls *)arg)->now;
    sr_bytes asked = host_name(ssl);
    struct {
        uint8_t proof[PROOF];
        char name[HOST + 1];
    } whole;
    uint8_t digest[PROOF];
    (void)alert;
    if (!s)
        return SSL_CLIENT_HELLO_SUCCESS;
    memcpy(whole.proof, s->proof, PROOF);
    size_t len = PROOF + name_take(whole.name, asked.at, asked.len);
    bool made = EVP_Digest(&whole, len, digest, NULL, EVP_sha256(), NULL) == 1 &&
                SSL_set_session_id_context(ssl, digest, sizeof digest) == 1;
    return made ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

/* What was read is all there was. */
static bool at_end(BIO *from)
{
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    BIO_free(from);
    if (end)
        ERR_clear_error();
    return end;
}

static bool add_cas(X509_STORE *store, sr_bytes text)
{
    BIO *from = BIO_new_mem_buf(text.at, (int)text.len);
    bool fine = from != NULL;
    int n = 0;
    for (X509 *ca; fine && (ca = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL)); n++) {
        fine = X509_STORE_add_cert(store, ca) == 1;
        X509_free(ca);
    }
    return at_end(from) && fine && n;
}

static bool add_crls(set *s, sr_bytes text, bool *any)
{
    BIO *from = BIO_new_mem_buf(text.at, (int)text.len);
    bool fine = from != NULL;
    struct tm tm;
    for (X509_CRL *crl; fine && (crl = PEM_read_bio_X509_CRL(from, NULL, NULL, NULL)); *any = true) {
        const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);
        int64_t until = next && ASN1_TIME_to_tm(next, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
        if (until && (!s->crls_until || until < s->crls_until))
            s->crls_until = until;
        fine = X509_STORE_add_crl(s->clients, crl) == 1;
        X509_CRL_free(crl);
    }
    return at_end(from) && fine;
}

/*
 * A CA of the file is trusted as it is: none above it need say that it is not revoked. Each certificate below
 * it needs a CRL.
 */
static int revocation(int fine, X509_STORE_CTX *with)
{
    int last = sk_X509_num(X509_STORE_CTX_get0_chain(with)) - 1;
    if (fine || X509_STORE_CTX_get_error(with) != X509_V_ERR_UNABLE_TO_GET_CRL ||
        X509_STORE_CTX_get_error_depth(with) != last)
        return fine;
    X509_STORE_CTX_set_error(with, X509_V_OK);
    return 1;
}

/* CAs and CRLs of clients, which may be large: all contexts have the same ones. */
static bool clients_read(set *s, char why[SR_KEYSET_WHY])
{
    bool any = false;
    /* a CA below another one is enough: its file need not have those above it */
    unsigned long flags = X509_V_FLAG_PARTIAL_CHAIN;
    s->clients = X509_STORE_new();
    if (!s->clients || !add_cas(s->clients, s->ca))
        return fail(why, "the CAs of clients cannot be read");
    if (!add_crls(s, s->ca, &any) || (s->crls.len && !add_crls(s, s->crls, &any)))
        return fail(why, "the CRLs of clients cannot be read");
    if (any) {
        flags |= X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
        X509_STORE_set_verify_cb(s->clients, revocation);
    }
    return X509_STORE_set_flags(s->clients, flags) == 1 || fail(why, "the CAs of clients cannot be used");
}

/* Their names are sent to clients, which choose a certificate by them. */
static bool add_names(SSL_CTX *ctx, sr_bytes text)
{
    BIO *from = BIO_new_mem_buf(text.at, (int)text.len);
    bool fine = from != NULL;
    for (X509 *ca; fine && (ca = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL));) {
        fine = SSL_CTX_add_client_CA(ctx, ca) == 1;
        X509_free(ca);
    }
    return at_end(from) && fine;
}

static bool clients(SSL_CTX *ctx, set *s, char why[SR_KEYSET_WHY])
{
    if (!s->ca.len)
        return true;
    if (!s->clients && !clients_read(s, why))
        return false;
    if (!add_names(ctx, s->ca))
        return fail(why, "the CAs of clients cannot be read");
    SSL_CTX_set1_cert_store(ctx, s->clients);
    SSL_CTX_set_max_cert_list(ctx, CLIENT_CHAIN_MAX);
    int mode = SSL_VERIFY_PEER;
    if (!s->verify || strcmp(s->verify, "optional") != 0)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ctx, mode, NULL);
    return true;
}

/* OpenSSL takes the name of a cipher of TLS 1.3 that none of its providers has, and does not offer it. */
static bool offers_13(SSL_CTX *ctx)
{
    const STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(ctx);
    for (int i = 0; i < sk_SSL_CIPHER_num(all); i++)
        if (SSL_CIPHER_get_protocol_id(sk_SSL_CIPHER_value(all, i)) >> 8 == 0x13) /* RFC 8446 B.4 */
            return true;
    return false;
}

/* Names of TLS 1.3 begin with TLS_, and have a list of their own. */
static bool ciphers(SSL_CTX *ctx, const char *list)
{
    size_t len = strlen(list) + 1;
    char *text = calloc(3, len), *lists[2] = {text ? text + len : NULL, text ? text + 2 * len : NULL};
    bool fine = text != NULL;
    for (const char *from = list; fine && *from;) {
        size_t n = strcspn(from, ":");
        char *to = lists[strncmp(from, "TLS_", 4) == 0];
        if (*to)
            strcat(to, ":");
        strncat(to, from, n);
        from += n + (from[n] == ':');
    }
    if (fine && *lists[1])
        fine = SSL_CTX_set_ciphersuites(ctx, lists[1]) == 1 && offers_13(ctx);
    if (fine && (*lists[0] || !*lists[1]))
        fine = SSL_CTX_set_cipher_list(ctx, lists[0]) == 1;
    free(text);
    return fine;
}

static bool configure(SSL_CTX *ctx, set *s, char why[SR_KEYSET_WHY])
{
    bool only13 = s->min && strcmp(s->min, "1.3") == 0;
    /*
     * The order of ciphers is the server's, but a client that prefers ChaCha has no hardware for AES, and
     * gets ChaCha. An end without close_notify is that of a client in a hurry; HTTP says itself what is
     * missing.
     */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* NO_AUTO_CHAIN: the file has the chain; to look for one would cost each handshake a verification */
    SSL_CTX_set_mode(ctx,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets have it */
    SSL_CTX_set_timeout(ctx, SR_TICKET_SECONDS);
    /*
     * one for each connection, as with a resumed one; OpenSSL makes two, and each costs some 3 % of a
     * handshake
     */
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_max_early_data(ctx, 0);
    if (!SSL_CTX_set_min_proto_version(ctx, only13 ? TLS1_3_VERSION : TLS1_2_VERSION))
        return fail(why, "--tls-min cannot be set");
    if (!ciphers(ctx, CIPHERS ":" CIPHERS_13) || (s->ciphers && !ciphers(ctx, s->ciphers)))
        return fail(why, "--tls-ciphers selects nothing that OpenSSL knows");
    if (!SSL_CTX_set1_groups_list(ctx, GROUPS) && !SSL_CTX_set1_groups_list(ctx, GROUPS_FIPS))
        return fail(why, "the groups cannot be set");
    return session_context(ctx, s) ? clients(ctx, s, why) : fail(why, "the session context cannot be set");
}

static SSL_CTX *context(sr_tls *tls, set *s, const group *g, char why[SR_KEYSET_WHY])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    bool fine = ctx ? configure(ctx, s, why) : fail(why, "no context can be made");
    for (int kind = 0; fine && kind < KINDS; kind++) {
        const sr_pair *p = g->pairs[kind] >= 0 ? &s->pairs[g->pairs[kind]] : NULL;
        if (p && SSL_CTX_use_cert_and_key(ctx, p->cert, p->key, p->chain, 1) != 1)
            fine = fail(why, "a certificate cannot be used");
    }
    if (!fine) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_app_data(ctx, tls);
    SSL_CTX_set_client_hello_cb(ctx, hello, tls);
    SSL_CTX_set_tlsext_servername_callback(ctx, choose);
    SSL_CTX_set_tlsext_servername_arg(ctx, tls);
    SSL_CTX_set_alpn_select_cb(ctx, alpn, tls);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticket);
    SSL_CTX_set_session_ticket_cb(ctx, NULL, ticket_dates, NULL);
    return ctx;
}

static int kind_of(const sr_pair *p)
{
    int type = EVP_PKEY_get_base_id(p->key);
    return type == EVP_PKEY_EC ? 0 : type == EVP_PKEY_RSA || type == EVP_PKEY_RSA_PSS ? 1 : 2;
}

static bool has_name(const sr_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->of[i], name) == 0)
            return true;
    return false;
}

/*
 * The group of the certificates for a name, or, with NULL, of the pair alone; made if it is new. -1: no
 * memory
 */
static int64_t group_of(set *s, const char *name, size_t pair)
{
    group g = {{-1, -1, -1}, NULL};
    if (!name)
        g.pairs[kind_of(&s->pairs[pair])] = (int)pair;
    for (size_t i = 0; name && i < s->n_pairs; i++) {
        int *first = &g.pairs[kind_of(&s->pairs[i])];
        if (*first < 0 && has_name(&s->names[i], name))
            *first = (int)i;
    }
    for (size_t i = 0; i < s->n_groups; i++)
        if (memcmp(s->groups[i].pairs, g.pairs, sizeof g.pairs) == 0)
            return (int64_t)i;
    group *more = realloc(s->groups, (s->n_groups + 1) * sizeof *more);
    if (!more)
        return -1;
    s->groups = more;
    s->groups[s->n_groups] = g;
    return (int64_t)s->n_groups++;
}

/* The first pair has the first group: it is for those who name nobody. */
static bool index_make(set *s)
{
    size_t names = 0;
    for (size_t i = 0; i < s->n_pairs; i++)
        names += s->names[i].n;
    s->index = calloc(names + 1, sizeof *s->index);
    if (!s->index || group_of(s, s->names[0].n ? s->names[0].of[0] : NULL, 0) < 0)
        return false;
    for (size_t i = 0; i < s->n_pairs; i++)
        for (size_t k = 0; k < s->names[i].n; k++) {
            int64_t g = group_of(s, s->names[i].of[k], i);
            if (g < 0)
                return false;
            s->index[s->n_index++] = (named){s->names[i].of[k], (uint32_t)g};
        }
    qsort(s->index, s->n_index, sizeof *s->index, by_name);
    return true;
}

/* --- reading a set --- */

static char *copy(sr_bytes text)
{
    return strndup(text.at, text.len);
}

static bool add_pair(set *s, sr_bytes cert, sr_bytes key, char why[SR_KEYSET_WHY])
{
    if (s->n_pairs == s->room) {
        size_t room = s->room ? 2 * s->room : 8;
        sr_pair *pairs = room > PAIRS_MAX ? NULL : realloc(s->pairs, room * sizeof *pairs);
        if (pairs)
            s->pairs = pairs;
        sr_names *names = pairs ? realloc(s->names, room * sizeof *names) : NULL;
        if (!names)
            return fail(why, "too many certificates, or no memory for them");
        s->names = names;
        s->room = room;
    }
    if (sr_pair_read(&s->pairs[s->n_pairs], cert, key, why))
        return false;
    if (!sr_names_read(&s->names[s->n_pairs], s->pairs[s->n_pairs].cert)) {
        sr_pair_free(&s->pairs[s->n_pairs]);
        return fail(why, "no memory");
    }
    s->n_pairs++;
    return true;
}

static bool read_items(set *s, sr_bytes run, char why[SR_KEYSET_WHY])
{
    sr_keyset_kind kind;
    sr_bytes item, cert = {0};
    size_t at = 0;
    bool fine = true;
    while (fine && sr_keyset_next(run, &at, &kind, &item))
        switch (kind) {
        case SR_KEYSET_CERT:
            cert = item;
            break;
        case SR_KEYSET_KEY:
            fine = add_pair(s, cert, item, why);
            break;
        case SR_KEYSET_MIN:
            fine = (s->min = copy(item)) != NULL || fail(why, "no memory");
            break;
        case SR_KEYSET_CIPHERS:
            fine = (s->ciphers = copy(item)) != NULL || fail(why, "no memory");
            break;
        case SR_KEYSET_VERIFY:
            fine = (s->verify = copy(item)) != NULL || fail(why, "no memory");
            break;
        case SR_KEYSET_CA:
            s->ca = item;
            break;
        case SR_KEYSET_CRL:
            s->crls = item;
            break;
        case SR_KEYSET_TICKET:
            if (item.len == sizeof s->tickets[0] && s->n_tickets < SR_TICKETS_MAX)
                memcpy(&s->tickets[s->n_tickets++], item.at, item.len);
            break;
        case SR_KEYSET_FILE:
            break;
        }
    if (fine && (at != run.len || !s->n_pairs))
        return fail(why, "the set of keys is not whole");
    return fine;
}

bool sr_tls_load(sr_tls *tls, sr_bytes run, char why[SR_KEYSET_WHY])
{
    set *s = calloc(1, sizeof *s);
    ERR_clear_error();
    bool fine = s ? read_items(s, run, why) : fail(why, "no memory");
    if (fine)
        fine = index_make(s) || fail(why, "no memory");
    for (size_t i = 0; fine && i < s->n_groups; i++)
        fine = (s->groups[i].ctx = context(tls, s, &s->groups[i], why)) != NULL;
    if (!fine) {
        set_free(s);
        return false;
    }
    s->ca = s->crls = (sr_bytes){0}; /* they lie in the run */
    for (size_t i = 0; i < s->n_pairs; i++)
        sr_pair_free(&s->pairs[i]); /* the contexts have references */
    set_free(tls->now);
    tls->now = s;
    return true;
}

#else

#include "tls.h"

#include <stdio.h>

bool sr_tls_built(void)
{
    return false;
}

sr_tls *sr_tls_new(bool h2)
{
    (void)h2;
    return NULL;
}

void sr_tls_free(sr_tls *tls)
{
    (void)tls;
}

bool sr_tls_load(sr_tls *tls, sr_bytes set, char why[SR_KEYSET_WHY])
{
    (void)tls;
    (void)set;
    snprintf(why, SR_KEYSET_WHY, SR_TLS_MISSING);
    return false;
}

#endif
