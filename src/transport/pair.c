/* pair: reads a certificate, its chain and its key from PEM. */
#ifdef SR_TLS

#include "tlsset.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

/* OpenSSL would ask a terminal. */
static int no_passphrase(char *to, int size, int writing, void *asked)
{
    (void)to;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static bool fail(char why[SR_KEYSET_WHY], const char *text)
{
    snprintf(why, SR_KEYSET_WHY, "%s", text);
    ERR_clear_error();
    return false;
}

static bool read_certs(sr_pair *pair, BIO *from, char why[SR_KEYSET_WHY])
{
    pair->cert = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL);
    if (!pair->cert)
        return fail(why, "contains no certificate in PEM format");
    pair->chain = sk_X509_new_null();
    for (X509 *next; pair->chain && (next = PEM_read_bio_X509(from, NULL, NULL, NULL));)
        if (!sk_X509_push(pair->chain, next)) {
            X509_free(next);
            return fail(why, "needs memory");
        }
    if (!pair->chain)
        return fail(why, "needs memory");
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return end || fail(why, "contains a certificate after the first that is damaged");
}

static bool read_key(sr_pair *pair, BIO *from, char why[SR_KEYSET_WHY])
{
    bool asked = false;
    pair->key = PEM_read_bio_PrivateKey(from, NULL, no_passphrase, &asked);
    return pair->key || fail(why, asked ? "is encrypted with a passphrase, which nobody could enter at a "
                                          "restart: decrypt it (openssl pkey -in FILE -out NEW)"
                                        : "contains no private key in PEM format");
}

sr_pair_fault sr_pair_read(sr_pair *pair, sr_bytes cert, sr_bytes key, char why[SR_KEYSET_WHY])
{
    sr_pair_fault fault = SR_PAIR_FINE;
    *pair = (sr_pair){0};
    BIO *certs = BIO_new_mem_buf(cert.at, (int)cert.len), *keys = BIO_new_mem_buf(key.at, (int)key.len);
    if (!certs || !keys || !read_certs(pair, certs, why))
        fault = SR_PAIR_CERT;
    else if (!read_key(pair, keys, why))
        fault = SR_PAIR_KEY;
    else if (X509_check_private_key(pair->cert, pair->key) != 1)
        fault = SR_PAIR_STRANGERS;
    if (!certs || !keys)
        fail(why, "needs memory");
    else if (fault == SR_PAIR_STRANGERS)
        fail(why, "the key is not that of the certificate");
    BIO_free(certs);
    BIO_free(keys);
    if (fault)
        sr_pair_free(pair);
    return fault;
}

void sr_pair_free(sr_pair *pair)
{
    X509_free(pair->cert);
    sk_X509_pop_free(pair->chain, X509_free);
    EVP_PKEY_free(pair->key);
    *pair = (sr_pair){0};
}

/* --- names --- */

static bool add_name(sr_names *names, const char *at, int len)
{
    if (len <= 0 || memchr(at, 0, (size_t)len))
        return true; /* nobody can ask for it */
    char **more = realloc(names->of, (names->n + 1) * sizeof *more);
    if (!more)
        return false;
    names->of = more;
    char *text = malloc((size_t)len + 1);
    if (!text)
        return false;
    for (int i = 0; i < len; i++)
        text[i] = (char)sr_lower((unsigned char)at[i]);
    text[len] = 0;
    names->of[names->n++] = text;
    return true;
}

bool sr_names_read(sr_names *names, X509 *cert)
{
    bool read = true, any = false;
    *names = (sr_names){0};
    GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; read && i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type != GEN_DNS)
            continue;
        any = true;
        read = add_name(names, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                        ASN1_STRING_length(name->d.dNSName));
    }
    GENERAL_NAMES_free(all);
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = any ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (read && at >= 0) {
        const ASN1_STRING *cn = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        read = add_name(names, (const char *)ASN1_STRING_get0_data(cn), ASN1_STRING_length(cn));
    }
    if (!read)
        sr_names_free(names);
    return read;
}

void sr_names_free(sr_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->of[i]);
    free(names->of);
    *names = (sr_names){0};
}

#endif
