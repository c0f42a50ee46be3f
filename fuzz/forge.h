#ifndef FORGE_H
#define FORGE_H
/*
 * forge: records that OpenSSL would not send, encrypted as those of a client after its handshake: any type,
 * any bytes, none at all, any number of KeyUpdates, attempts to renegotiate. Of AES-128-GCM or AES-128-CCM
 * with SHA-256 only. The client's OpenSSL can send nothing after the first of them, as it does not count
 * them; it can go on reading.
 */
#include "fuzz.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

#define FORGE_GCM_12 "ECDHE-ECDSA-AES128-GCM-SHA256"
#define FORGE_GCM_13 "TLS_AES_128_GCM_SHA256"
#define FORGE_CCM_12 "ECDHE-ECDSA-AES128-CCM"
#define FORGE_CCM_13 "TLS_AES_128_CCM_SHA256"

enum {
    FORGE_SECRET = 32,
    FORGE_RECORD = 16384,
    FORGE_MORE = 64 /* bytes of a record besides its plaintext */
};

typedef struct forge {
    bool ready, is_13, is_ccm;
    unsigned char secret[FORGE_SECRET], key[16], iv[12];
    uint64_t sequence; /* of the next record */
} forge;

static inline void forge_derive(const char *name, OSSL_PARAM *params, unsigned char *to, size_t len)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, name, NULL);
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
    MUST(ctx && EVP_KDF_derive(ctx, to, len, params) == 1);
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
}

/* HKDF-Expand-Label of RFC 8446 7.1, without a context. */
static inline void forge_expand(const unsigned char *secret, const char *label, unsigned char *to, size_t len)
{
    unsigned char info[64];
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY,
        n = snprintf((char *)info + 3, sizeof info - 4, "tls13 %s", label);
    info[0] = 0;
    info[1] = (unsigned char)len;
    info[2] = (unsigned char)n;
    info[3 + n] = 0;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, FORGE_SECRET),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, (size_t)n + 4),
        OSSL_PARAM_construct_end(),
    };
    forge_derive("HKDF", params, to, len);
}

static inline void forge_keys_13(forge *f)
{
    forge_expand(f->secret, "key", f->key, sizeof f->key);
    forge_expand(f->secret, "iv", f->iv, sizeof f->iv);
    f->sequence = 0;
}

/* As a callback of SSL_CTX_set_keylog_callback; the app data of the SSL is its forge. */
static inline void forge_keylog(const SSL *ssl, const char *line)
{
    forge *f = SSL_get_app_data(ssl);
    const char *hex = strrchr(line, ' ');
    if (!f || strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) != 0 || strlen(hex + 1) != 2 * FORGE_SECRET)
        return;
    for (int i = 0; i < FORGE_SECRET; i++) {
        char two[3] = {hex[1 + 2 * i], hex[2 + 2 * i], '\0'};
        f->secret[i] = (unsigned char)strtoul(two, NULL, 16);
    }
}

static inline bool forge_can(const SSL *ssl)
{
    const char *name = SSL_get_cipher_name(ssl);
    return !strcmp(name, FORGE_GCM_12) || !strcmp(name, FORGE_GCM_13) || !strcmp(name, FORGE_CCM_12) ||
           !strcmp(name, FORGE_CCM_13);
}

/* The handshake is complete, forge_can, and the client has sent so many records of application data since. */
static inline void forge_begin(forge *f, SSL *ssl, uint64_t sent)
{
    unsigned char seed[13 + 64], block[40], master[48];
    f->ready = true;
    f->is_13 = SSL_version(ssl) == TLS1_3_VERSION;
    f->is_ccm = strstr(SSL_get_cipher_name(ssl), "CCM") != NULL;
    if (f->is_13) {
        forge_keys_13(f);
        f->sequence = sent;
        return;
    }
    memcpy(seed, "key expansion", 13);
    MUST(SSL_get_server_random(ssl, seed + 13, 32) == 32 && SSL_get_client_random(ssl, seed + 45, 32) == 32);
    MUST(SSL_SESSION_get_master_key(SSL_get_session(ssl), master, sizeof master) == sizeof master);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, sizeof master),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof seed),
        OSSL_PARAM_construct_end(),
    };
    forge_derive("TLS1-PRF", params, block,
                 sizeof block); /* RFC 5246 6.3: keys, then nonces, the client's first */
    memcpy(f->key, block, 16);
    memcpy(f->iv, block + 32, 4);
    f->sequence = 1 + sent; /* after Finished */
}

/*
 * What a record is to its reader: in TLS 1.3 a type of 0 is padding, and so are zeros before it (RFC 8446
 * 5.4).
 */
static inline unsigned char forge_meaning(const forge *f, unsigned char type, const void *at, size_t *len)
{
    const unsigned char *bytes = (const unsigned char *)at;
    while (f->is_13 && !type && *len)
        type = bytes[--*len];
    return type;
}

/* Writes a record of this type to `to`, which has room for len + FORGE_MORE. Returns its length. */
static inline size_t forge_record(forge *f, unsigned char type, const void *at, size_t len, unsigned char *to)
{
    unsigned char nonce[12], aad[13], inner[FORGE_RECORD + 1];
    size_t plain = len + f->is_13, head = f->is_13 ? 5 : 13, all = head - 5 + plain + 16;
    int n, more;
    MUST(f->ready && len <= FORGE_RECORD);
    if (len)
        memcpy(inner, at, len);
    inner[len] = type;
    for (int i = 0; i < 8; i++)
        aad[i] = (unsigned char)(f->sequence >> (56 - 8 * i));
    memcpy(nonce, f->iv, sizeof nonce);
    for (int i = 0; i < 8; i++)
        nonce[4 + i] = f->is_13 ? nonce[4 + i] ^ aad[i] : aad[i];
    to[0] = f->is_13 ? SSL3_RT_APPLICATION_DATA : type;
    to[1] = to[2] = 3;
    to[3] = (unsigned char)(all >> 8);
    to[4] = (unsigned char)all;
    if (!f->is_13) {
        memcpy(to + 5, aad, 8);
        aad[8] = type;
        aad[9] = aad[10] = 3;
        aad[11] = (unsigned char)(len >> 8);
        aad[12] = (unsigned char)len;
    }
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    MUST(ctx &&
         EVP_EncryptInit_ex(ctx, f->is_ccm ? EVP_aes_128_ccm() : EVP_aes_128_gcm(), NULL, NULL, NULL) == 1);
    if (f->is_ccm) /* all lengths come first */
        MUST(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL) == 1 &&
             EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, NULL) == 1);
    MUST(EVP_EncryptInit_ex(ctx, NULL, NULL, f->key, nonce) == 1);
    MUST(!f->is_ccm || EVP_EncryptUpdate(ctx, NULL, &n, NULL, (int)plain) == 1);
    MUST(EVP_EncryptUpdate(ctx, NULL, &n, f->is_13 ? to : aad, f->is_13 ? 5 : 13) == 1);
    n = 0;
    MUST(EVP_EncryptUpdate(ctx, to + head, &n, inner, (int)plain) == 1);
    MUST(EVP_EncryptFinal_ex(ctx, to + head + n, &more) == 1);
    MUST(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, to + head + plain) == 1);
    EVP_CIPHER_CTX_free(ctx);
    f->sequence++;
    type = forge_meaning(f, type, at, &len);
    if (f->is_13 && type == SSL3_RT_HANDSHAKE && len == 5 &&
        *(const unsigned char *)at == SSL3_MT_KEY_UPDATE) {
        forge_expand(f->secret, "traffic upd", f->secret, sizeof f->secret);
        forge_keys_13(f);
    }
    return 5 + all;
}

#endif
