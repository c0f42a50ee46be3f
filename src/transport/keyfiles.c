#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* scandir, versionsort */
#endif
#include "keyfiles.h"

#include "../base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool add_path(const char ***list, size_t *n, const char *path)
{
    const char **more = realloc(*list, (*n + 1) * sizeof *more);
    if (!more)
        return false;
    *list = more;
    more[(*n)++] = path;
    return true;
}

bool sr_keyfiles_cert(sr_keyfiles *from, const char *path)
{
    return add_path(&from->certs, &from->n_certs, path);
}

bool sr_keyfiles_key(sr_keyfiles *from, const char *path)
{
    return add_path(&from->keys, &from->n_keys, path);
}

bool sr_keyfiles_crl(sr_keyfiles *from, const char *path)
{
    return add_path(&from->crls, &from->n_crls, path);
}

bool sr_keyfiles_any(const sr_keyfiles *from)
{
    return from->n_certs || from->dir || from->self_signed;
}

void sr_keyfiles_free(sr_keyfiles *from)
{
    free(from->certs);
    free(from->keys);
    free(from->crls);
    *from = (sr_keyfiles){0};
}

bool sr_keyfiles_ticket(sr_ticket_key *key, int64_t since)
{
    key->since = since;
    return sr_random(key->name, sizeof key->name) && sr_random(key->cipher, sizeof key->cipher) &&
           sr_random(key->mac, sizeof key->mac);
}

#ifdef SR_TLS

#include "tlsset.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_MAX = 1024 * 1024,
    CRL_MAX = 16 * FILE_MAX,
    DAYS_SELF = 90,
    RENEW_SELF = 30,
    HOST_SHOWN = 128,
    NAME_MAX_SHOWN = 256,
    PATH_MAX_SHOWN = 4096
};

typedef struct reading {
    sr_buffer *set;
    sr_keyfiles_tell *tell;
    void *with;
    char *why;
    bool expired;       /* the last failure was that something has expired, */
    bool takes_expired; /* which is no failure now */
} reading;

__attribute__((format(printf, 2, 3))) static bool fail(reading *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, SR_KEYSET_WHY, format, args);
    va_end(args);
    ERR_clear_error();
    return false;
}

/* --- files --- */

/* Appends what the file has, at most `most` bytes. */
static bool slurp(reading *r, const char *option, const char *path, off_t most, sr_buffer *to)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0)
        fail(r, "%s %s: %s", option, path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        fail(r, "%s %s: is not a file", option, path);
    else if (st.st_size > most)
        fail(r, "%s %s: is larger than %d MiB", option, path, (int)(most / FILE_MAX));
    else if (!sr_buffer_reserve(to, (size_t)st.st_size + 1)) /* at once: no copy is left behind */
        fail(r, "%s %s: no memory", option, path);
    else {
        ssize_t n;
        size_t before = to->end;
        while (to->end < to->cap && (n = read(fd, to->data + to->end, to->cap - to->end)) > 0)
            to->end += (size_t)n;
        close(fd);
        return to->end > before || fail(r, "%s %s: is empty", option, path);
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* --- checks --- */

static int64_t seconds(const ASN1_TIME *at)
{
    struct tm tm;
    return ASN1_TIME_to_tm(at, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static const char *day(int64_t at, char text[32])
{
    struct tm tm;
    time_t t = (time_t)at;
    if (!gmtime_r(&t, &tm) || !strftime(text, 32, "%F %T UTC", &tm))
        text[0] = 0;
    return text;
}

/* False: the name has none of this kind. */
static bool part_of_name(const X509_NAME *name, int kind, char text[NAME_MAX_SHOWN])
{
    int at = X509_NAME_get_index_by_NID(name, kind, -1);
    const ASN1_STRING *part = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    if (!part || ASN1_STRING_length(part) <= 0)
        return false;
    snprintf(text, NAME_MAX_SHOWN, "%.*s", ASN1_STRING_length(part),
             (const char *)ASN1_STRING_get0_data(part));
    return true;
}

static const char *common_name(const X509_NAME *name, char text[NAME_MAX_SHOWN])
{
    if (!part_of_name(name, NID_commonName, text) && !part_of_name(name, NID_organizationName, text))
        snprintf(text, NAME_MAX_SHOWN, "an issuer without a name");
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    return text;
}

static bool check_dates(reading *r, const char *path, X509 *cert, const char *which)
{
    char text[32];
    int64_t now = time(NULL), from = seconds(X509_get0_notBefore(cert)),
            to = seconds(X509_get0_notAfter(cert));
    if (to <= now && !r->takes_expired) {
        r->expired = true;
        return fail(r, "--tls-cert %s: %s expired on %s", path, which, day(to, text));
    }
    if (from > now + 300) /* clocks differ */
        return fail(r, "--tls-cert %s: %s is not valid before %s", path, which, day(from, text));
    return true;
}

static bool self_issued(X509 *cert)
{
    return X509_NAME_cmp(X509_get_subject_name(cert), X509_get_issuer_name(cert)) == 0;
}

/* Whether the system trusts the issuer of the certificate itself, so that its clients have it. */
static bool known_issuer(X509 *cert)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *with = X509_STORE_CTX_new();
    X509 *issuer = NULL;
    bool known = store && with && X509_STORE_set_default_paths(store) == 1 &&
                 X509_STORE_CTX_init(with, store, cert, NULL) == 1 &&
                 X509_STORE_CTX_get1_issuer(&issuer, with, cert) == 1;
    X509_free(issuer);
    X509_STORE_CTX_free(with);
    X509_STORE_free(store);
    ERR_clear_error();
    return known;
}

static const char *reason_of(unsigned long error)
{
    const char *text = ERR_reason_error_string(error);
    return text ? text : "no memory";
}

/* Each certificate of the file has issued the one before it; one alone has issued itself, or a root has. */
static bool check_chain(reading *r, const char *path, const sr_pair *p)
{
    char name[NAME_MAX_SHOWN], issuer[NAME_MAX_SHOWN];
    X509 *below = p->cert;
    int n = sk_X509_num(p->chain);
    if (!n && !self_issued(p->cert) && !known_issuer(p->cert))
        return fail(
            r,
            "--tls-cert %s: the chain is missing: the file has the certificate of %s, but not that of its "
            "issuer, %s; use the file with the full chain (fullchain.pem), or append the issuer's",
            path, common_name(X509_get_subject_name(p->cert), name),
            common_name(X509_get_issuer_name(p->cert), issuer));
    for (int i = 0; i < n; i++) {
        X509 *above = sk_X509_value(p->chain, i);
        bool issued =
            X509_check_issued(above, below) == X509_V_OK && X509_verify(below, X509_get0_pubkey(above)) == 1;
        if (!issued && ERR_GET_REASON(ERR_peek_error()) == ERR_R_UNSUPPORTED) /* no provider has the digest */
            return fail(r, "--tls-cert %s: OpenSSL refuses the certificate: %s", path,
                        reason_of(ERR_peek_error()));
        if (!issued)
            return fail(
                r,
                "--tls-cert %s: the chain is broken: certificate %d, of %s, is not that of the issuer of "
                "certificate %d, %s",
                path, i + 2, common_name(X509_get_subject_name(above), name), i + 1,
                common_name(X509_get_issuer_name(below), issuer));
        if (!check_dates(r, path, above, "a certificate of the chain"))
            return false;
        below = above;
    }
    return true;
}

/* OpenSSL refuses what is too weak. */
static bool check_strength(reading *r, const char *path, const sr_pair *p)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    bool fine = ctx && SSL_CTX_use_cert_and_key(ctx, p->cert, p->key, p->chain, 1) == 1;
    unsigned long error = ERR_peek_last_error();
    SSL_CTX_free(ctx);
    if (fine)
        return true;
    if (ERR_GET_REASON(error) == SSL_R_EE_KEY_TOO_SMALL)
        return fail(r, "--tls-cert %s: the key is too short: use RSA with 2048 bits, or ECDSA with P-256",
                    path);
    if (ERR_GET_REASON(error) == SSL_R_CA_KEY_TOO_SMALL)
        return fail(r, "--tls-cert %s: the key of a certificate of the chain is too short", path);
    if (ERR_GET_REASON(error) == SSL_R_CA_MD_TOO_WEAK)
        return fail(r, "--tls-cert %s: a certificate is signed with a digest that is too weak, such as SHA-1",
                    path);
    return fail(r, "--tls-cert %s: OpenSSL refuses the certificate: %s", path, reason_of(error));
}

static bool tell_about(reading *r, const char *path, const sr_pair *p)
{
    sr_names names;
    char name[NAME_MAX_SHOWN];
    int64_t expires = seconds(X509_get0_notAfter(p->cert));
    if (!sr_names_read(&names, p->cert))
        return fail(r, "--tls-cert %s: no memory", path);
    for (int i = 0; i < sk_X509_num(p->chain); i++) { /* one that ends earlier ends all */
        int64_t at = seconds(X509_get0_notAfter(sk_X509_value(p->chain, i)));
        expires = at < expires ? at : expires;
    }
    if (r->tell)
        r->tell(r->with, SR_KEYFILES_CERT, path,
                names.n ? names.of[0] : common_name(X509_get_subject_name(p->cert), name), expires);
    sr_names_free(&names);
    return true;
}

static bool refuse_pair(reading *r, sr_pair_fault fault, const char *cert_path, const char *key_path,
                        const char *why)
{
    if (fault == SR_PAIR_CERT)
        return fail(r, "--tls-cert %s: %s", cert_path, why);
    if (fault == SR_PAIR_STRANGERS)
        return fail(r, "--tls-key %s: the key does not belong to the certificate in %s", key_path, cert_path);
    if (strcmp(cert_path, key_path) == 0)
        return fail(r, "--tls-cert %s: %s; if the key is in another file, name that with --tls-key",
                    cert_path, why);
    return fail(r, "--tls-key %s: %s", key_path, why);
}

static bool add_pair(reading *r, const char *cert_path, const char *key_path, sr_bytes cert, sr_bytes key)
{
    char why[SR_KEYSET_WHY];
    sr_pair pair;
    sr_pair_fault fault = sr_pair_read(&pair, cert, key, why);
    if (fault)
        return refuse_pair(r, fault, cert_path, key_path, why);
    bool fine = check_dates(r, cert_path, pair.cert, "the certificate") && check_chain(r, cert_path, &pair) &&
                check_strength(r, cert_path, &pair) && tell_about(r, cert_path, &pair);
    sr_pair_free(&pair);
    if (fine && !(sr_keyset_add(r->set, SR_KEYSET_CERT, cert) && sr_keyset_add(r->set, SR_KEYSET_KEY, key) &&
                  sr_keyset_add(r->set, SR_KEYSET_FILE, sr_bytes_of(cert_path, strlen(cert_path)))))
        return fail(r, "--tls-cert %s: no memory", cert_path);
    return fine;
}

static bool read_pair(reading *r, const char *cert_path, const char *key_path)
{
    sr_buffer cert = {0}, key = {0};
    bool fine = slurp(r, "--tls-cert", cert_path, FILE_MAX, &cert) &&
                slurp(r, "--tls-key", key_path, FILE_MAX, &key) &&
                add_pair(r, cert_path, key_path, sr_bytes_of(sr_buffer_at(&cert), sr_buffer_len(&cert)),
                         sr_bytes_of(sr_buffer_at(&key), sr_buffer_len(&key)));
    sr_keyset_wipe(&cert); /* it may have the key as well */
    sr_keyset_wipe(&key);
    return fine;
}

/* --- certbot's layout --- */

/*
 * False: it is no directory with a certificate. One whose link leads nowhere, or that may not be looked at,
 * has one: the reading says what is wrong with it. If it were skipped, the clients of its name would get
 * another name's.
 */
static bool entry_paths(const char *dir, const char *name, char cert[PATH_MAX_SHOWN],
                        char key[PATH_MAX_SHOWN])
{
    struct stat st;
    bool fits = snprintf(cert, PATH_MAX_SHOWN, "%s/%s/fullchain.pem", dir, name) < PATH_MAX_SHOWN &&
                snprintf(key, PATH_MAX_SHOWN, "%s/%s/privkey.pem", dir, name) < PATH_MAX_SHOWN;
    return name[0] != '.' && fits && (lstat(cert, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

/* Those that have expired come last, as clients that name no host get the first. One at least is valid. */
static bool read_entries(reading *r, const char *dir, struct dirent **entries, int n)
{
    char cert[PATH_MAX_SHOWN], key[PATH_MAX_SHOWN];
    int valid = 0, expired = 0;
    for (int i = 0; i < n; i++) {
        struct dirent *entry = entries[i];
        if (!entry_paths(dir, entry->d_name, cert, key))
            continue;
        r->expired = false;
        if (read_pair(r, cert, key)) {
            valid++;
            continue;
        }
        if (!r->expired)
            return false;
        entries[i] = entries[expired];
        entries[expired++] = entry;
    }
    if (!valid)
        return !expired && fail(r, "--tls-dir %s: no directory in it has a fullchain.pem", dir);
    r->takes_expired = true;
    for (int i = 0; i < expired; i++)
        if (entry_paths(dir, entries[i]->d_name, cert, key) && !read_pair(r, cert, key))
            return false;
    r->takes_expired = false;
    return true;
}

/* A name that is no longer renewed must not keep the others from being renewed. */
static bool read_dir(reading *r, const char *given)
{
    char live[PATH_MAX_SHOWN];
    struct dirent **entries;
    struct stat st;
    if (snprintf(live, sizeof live, "%s/live", given) >= (int)sizeof live)
        return fail(r, "--tls-dir %s: %s", given, strerror(ENAMETOOLONG));
    const char *dir = stat(live, &st) == 0 && S_ISDIR(st.st_mode) ? live : given;
    int n = scandir(dir, &entries, NULL, alphasort);
    if (n < 0)
        return fail(r, "--tls-dir %s: %s", dir, strerror(errno));
    bool fine = read_entries(r, dir, entries, n);
    while (n > 0)
        free(entries[--n]);
    free(entries);
    return fine;
}

/* --- a certificate for development --- */

static bool extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX with;
    X509V3_set_ctx(&with, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &with, nid, value);
    bool added = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return added;
}

static bool add_name(X509_NAME *to, const char *kind, const char *text)
{
    return X509_NAME_add_entry_by_txt(to, kind, MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0) == 1;
}

/* The name of this machine; "" if a certificate cannot have it. */
static void host_name(char host[HOST_SHOWN])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
    memset(host, 0, HOST_SHOWN);
    if (gethostname(host, HOST_SHOWN - 1) != 0 || strspn(host, letters) != strlen(host))
        host[0] = 0;
}

static bool describe(X509 *cert, EVP_PKEY *key)
{
    char host[HOST_SHOWN], names[256];
    host_name(host);
    snprintf(names, sizeof names, "DNS:localhost,IP:127.0.0.1,IP:::1%s%s", host[0] ? ",DNS:" : "", host);
    X509_NAME *subject = X509_NAME_new();
    uint64_t serial = 0;
    bool fine = subject && sr_random(&serial, sizeof serial) && X509_set_version(cert, X509_VERSION_3) == 1 &&
                ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1 | 1) == 1 &&
                X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
                X509_gmtime_adj(X509_getm_notAfter(cert), DAYS_SELF * 86400L) &&
                add_name(subject, "CN", "localhost") &&
                add_name(subject, "O", "Sirius, self-signed, for development") &&
                X509_set_subject_name(cert, subject) == 1 && X509_set_issuer_name(cert, subject) == 1 &&
                X509_set_pubkey(cert, key) == 1 &&
                extension(cert, NID_basic_constraints, "critical,CA:FALSE") &&
                extension(cert, NID_ext_key_usage, "serverAuth") &&
                extension(cert, NID_subject_alt_name, names) && X509_sign(cert, key, EVP_sha256()) > 0;
    X509_NAME_free(subject);
    return fine;
}

/*
 * Where others could have read the key or written to it, it is not used. Nor if it is about to expire, or of
 * another machine.
 */
static bool is_own(int fd, off_t *size)
{
    struct stat st;
    *size = 0;
    if (fd < 0 || fstat(fd, &st) != 0)
        return false;
    *size = st.st_size;
    return S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) && st.st_size < FILE_MAX;
}

static bool still_fits(X509 *cert)
{
    char host[HOST_SHOWN];
    host_name(host);
    return self_issued(cert) && ASN1_TIME_cmp_time_t(X509_get0_notBefore(cert), time(NULL)) <= 0 &&
           ASN1_TIME_cmp_time_t(X509_get0_notAfter(cert), time(NULL) + RENEW_SELF * 86400) > 0 &&
           X509_check_host(cert, "localhost", 0, 0, NULL) == 1 &&
           (!host[0] || X509_check_host(cert, host, 0, 0, NULL) == 1);
}

/* Reads the one of an earlier start. False: there is none that can be used. */
static bool kept_self_signed(reading *r, const char *path)
{
    char why[SR_KEYSET_WHY];
    sr_buffer text = {0};
    sr_pair pair;
    off_t size;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    bool fine = is_own(fd, &size) && sr_buffer_reserve(&text, (size_t)size + 1);
    while (fine && text.end < text.cap && (n = read(fd, text.data + text.end, text.cap - text.end)) > 0)
        text.end += (size_t)n;
    if (fd >= 0)
        close(fd);
    sr_bytes all = sr_bytes_of(sr_buffer_at(&text), sr_buffer_len(&text));
    if (fine && (fine = sr_pair_read(&pair, all, all, why) == SR_PAIR_FINE)) {
        fine = still_fits(pair.cert);
        sr_pair_free(&pair);
    }
    ERR_clear_error();
    fine = fine && add_pair(r, "of --tls-self-signed", "of --tls-self-signed", all, all);
    sr_keyset_wipe(&text);
    return fine;
}

/* For the next start; if that fails, it makes another one. */
static void keep_self_signed(const char *path, sr_bytes cert, sr_bytes key)
{
    char part[PATH_MAX_SHOWN];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return;
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(part, 0700); /* as the XDG Base Directory Specification has it */
    }
    if (snprintf(part, sizeof part, "%s.%d", path, (int)getpid()) >= (int)sizeof part)
        return;
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    bool kept =
        write(fd, cert.at, cert.len) == (ssize_t)cert.len && write(fd, key.at, key.len) == (ssize_t)key.len;
    kept = close(fd) == 0 && kept && rename(part, path) == 0;
    if (!kept)
        unlink(part);
}

static bool make_self_signed(reading *r, const char *path)
{
    X509 *cert = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *certs = BIO_new(BIO_s_mem()), *keys = BIO_new(BIO_s_secmem());
    char *cert_at = NULL, *key_at = NULL;
    bool fine = cert && key && certs && keys && describe(cert, key) && PEM_write_bio_X509(certs, cert) == 1 &&
                PEM_write_bio_PrivateKey(keys, key, NULL, NULL, 0, NULL, NULL) == 1;
    if (!fine)
        fail(r, "--tls-self-signed: %s", ERR_reason_error_string(ERR_peek_last_error()));
    long cert_len = fine ? BIO_get_mem_data(certs, &cert_at) : 0,
         key_len = fine ? BIO_get_mem_data(keys, &key_at) : 0;
    sr_bytes cert_text = sr_bytes_of(cert_at, (size_t)cert_len),
             key_text = sr_bytes_of(key_at, (size_t)key_len);
    fine = fine && add_pair(r, "of --tls-self-signed", "of --tls-self-signed", cert_text, key_text);
    if (fine && path)
        keep_self_signed(path, cert_text, key_text);
    BIO_free(certs);
    BIO_free(keys);
    X509_free(cert);
    EVP_PKEY_free(key);
    return fine;
}

static bool self_signed(reading *r, const char *path)
{
    return (path && kept_self_signed(r, path)) || make_self_signed(r, path);
}

/* --- all of it --- */

static bool add_text(reading *r, sr_keyset_kind kind, const char *text)
{
    return !text || sr_keyset_add(r->set, kind, sr_bytes_of(text, strlen(text))) || fail(r, "no memory");
}

/* One that is valid is enough: a bundle may have old ones. */
static bool check_ca(reading *r, const char *path, BIO *from)
{
    int n = 0, valid = 0;
    for (X509 *ca; (ca = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL)); n++) {
        valid += ASN1_TIME_cmp_time_t(X509_get0_notAfter(ca), time(NULL)) > 0;
        X509_free(ca);
    }
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (!n)
        return fail(r, "--tls-client-ca %s: contains no certificate in PEM format", path);
    if (!end)
        return fail(r, "--tls-client-ca %s: contains a certificate after the first that is damaged", path);
    return valid || fail(r, "--tls-client-ca %s: each certificate in it has expired", path);
}

/* The CA, of those at `cas` (PEM), which has issued the CRL; NULL: none of them. */
static X509 *issuer_of(const X509_CRL *crl, sr_bytes cas)
{
    BIO *from = BIO_new_mem_buf(cas.at, (int)cas.len);
    X509 *ca = NULL;
    while (from && (ca = PEM_read_bio_X509_AUX(from, NULL, NULL, NULL)) &&
           X509_NAME_cmp(X509_get_subject_name(ca), X509_CRL_get_issuer(crl)) != 0)
        X509_free(ca);
    BIO_free(from);
    ERR_clear_error();
    return ca;
}

/*
 * One whose CA the client has to send is not known here, and is left to the handshake. One that has expired
 * is told.
 */
static bool check_crl(reading *r, const char *option, const char *path, X509_CRL *crl, sr_bytes cas)
{
    char name[NAME_MAX_SHOWN], text[32];
    const ASN1_TIME *next = X509_CRL_get0_nextUpdate(crl);
    int64_t since = seconds(X509_CRL_get0_lastUpdate(crl));
    X509 *ca = issuer_of(crl, cas);
    bool genuine = !ca || X509_CRL_verify(crl, X509_get0_pubkey(ca)) == 1;
    bool may = !ca || X509_get_key_usage(ca) & KU_CRL_SIGN;
    X509_free(ca);
    ERR_clear_error();
    common_name(X509_CRL_get_issuer(crl), name);
    if (!may)
        return fail(r, "%s %s: the certificate of the CA %s does not allow it to sign CRLs (keyUsage)",
                    option, path, name);
    if (!genuine)
        return fail(r, "%s %s: the CRL of %s is not signed with the key of that CA", option, path, name);
    if (since > time(NULL) + 300) /* clocks differ */
        return fail(r, "%s %s: the CRL of %s is not valid before %s", option, path, name, day(since, text));
    if (r->tell && next)
        r->tell(r->with, SR_KEYFILES_CRL, path, name, seconds(next));
    return true;
}

static bool check_crls(reading *r, const char *option, const char *path, sr_bytes text, sr_bytes cas, int *n)
{
    BIO *from = BIO_new_mem_buf(text.at, (int)text.len);
    bool fine = from || fail(r, "no memory");
    for (X509_CRL *crl; fine && (crl = PEM_read_bio_X509_CRL(from, NULL, NULL, NULL)); ++*n) {
        fine = check_crl(r, option, path, crl, cas);
        X509_CRL_free(crl);
    }
    BIO_free(from);
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return fine && (end || fail(r, "%s %s: contains a CRL that is damaged", option, path));
}

/* The CRLs of all files become one text. */
static bool read_crls(reading *r, const sr_keyfiles *from, sr_bytes cas)
{
    static const char option[] = "--tls-client-crl";
    sr_buffer all = {0};
    bool fine = true;
    for (size_t i = 0; fine && i < from->n_crls; i++) {
        const char *path = from->crls[i];
        size_t before = sr_buffer_len(&all);
        int n = 0;
        fine =
            slurp(r, option, path, CRL_MAX, &all) &&
            (sr_buffer_add(&all, "\n", 1) || fail(r, "%s %s: no memory", option, path)) &&
            check_crls(r, option, path,
                       sr_bytes_of(sr_buffer_at(&all) + before, sr_buffer_len(&all) - before), cas, &n) &&
            (n || fail(r, "%s %s: contains no CRL in PEM format (openssl crl -inform DER -in FILE -out NEW)",
                       option, path));
    }
    fine =
        fine && (!from->n_crls ||
                 sr_keyset_add(r->set, SR_KEYSET_CRL, sr_bytes_of(sr_buffer_at(&all), sr_buffer_len(&all))) ||
                 fail(r, "%s: too many CRLs, or no memory for them", option));
    sr_buffer_free(&all);
    return fine;
}

static bool read_ca(reading *r, const sr_keyfiles *files)
{
    const char *path = files->ca;
    sr_buffer ca = {0};
    int n = 0;
    bool fine = slurp(r, "--tls-client-ca", path, CRL_MAX, &ca); /* it may have CRLs, too */
    sr_bytes text = sr_bytes_of(sr_buffer_at(&ca), sr_buffer_len(&ca));
    BIO *from = fine ? BIO_new_mem_buf(text.at, (int)text.len) : NULL;
    if (fine && !from)
        fine = fail(r, "no memory");
    fine = fine && check_ca(r, path, from) && check_crls(r, "--tls-client-ca", path, text, text, &n) &&
           (sr_keyset_add(r->set, SR_KEYSET_CA, text) || fail(r, "no memory")) && read_crls(r, files, text);
    BIO_free(from);
    sr_buffer_free(&ca);
    return fine;
}

bool sr_keyfiles_read(const sr_keyfiles *from, sr_buffer *set, sr_keyfiles_tell *tell, void *with,
                      char why[SR_KEYSET_WHY])
{
    reading r = {.set = set, .tell = tell, .with = with, .why = why};
    if (from->n_keys && from->n_keys != from->n_certs)
        return fail(&r, "--tls-key: %zu keys for %zu certificates: give one --tls-key for each --tls-cert",
                    from->n_keys, from->n_certs);
    if (!add_text(&r, SR_KEYSET_MIN, from->min) || !add_text(&r, SR_KEYSET_CIPHERS, from->ciphers) ||
        !add_text(&r, SR_KEYSET_VERIFY, from->verify))
        return false;
    for (size_t i = 0; i < from->n_certs; i++)
        if (!read_pair(&r, from->certs[i], from->n_keys ? from->keys[i] : from->certs[i]))
            return false;
    return (!from->dir || read_dir(&r, from->dir)) &&
           (!from->self_signed || self_signed(&r, from->self_file)) && (!from->ca || read_ca(&r, from));
}

#else

#include "tls.h"

bool sr_keyfiles_read(const sr_keyfiles *from, sr_buffer *set, sr_keyfiles_tell *tell, void *with,
                      char why[SR_KEYSET_WHY])
{
    (void)from;
    (void)set;
    (void)tell;
    (void)with;
    snprintf(why, SR_KEYSET_WHY, SR_TLS_MISSING);
    return false;
}

#endif
