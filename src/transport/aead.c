#ifdef SR_TLS

#include "aead.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

size_t sr_aead_key_len(sr_aead_kind kind)
{
    return kind == SR_AEAD_AES128 ? 16 : 32;
}

/*
 * NULL: no provider has it, as that of FIPS has no ChaCha20. A look-up costs as much as a record, so there is
 * one.
 */
static const EVP_CIPHER *cipher_of(sr_aead_kind kind)
{
    static const char *const names[SR_AEADS] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};
    static EVP_CIPHER *found[SR_AEADS];
    static bool looked[SR_AEADS];
    if (!looked[kind]) {
        looked[kind] = true;
        found[kind] = EVP_CIPHER_fetch(NULL, names[kind], NULL);
        ERR_clear_error();
    }
    return found[kind];
}

/* EVP_CipherInit_ex2 would do for both, and looks at the direction each time. What is NULL stays as it is. */
static bool begin(sr_aead *a, const EVP_CIPHER *cipher, const uint8_t *key, const uint8_t *nonce)
{
    return (a->seals ? EVP_EncryptInit_ex2(a->ctx, cipher, key, nonce, NULL)
                     : EVP_DecryptInit_ex2(a->ctx, cipher, key, nonce, NULL)) == 1;
}

static bool update(sr_aead *a, uint8_t *to, const uint8_t *from, size_t len)
{
    int n = 0;
    return len <= INT_MAX &&
           (a->seals ? EVP_EncryptUpdate(a->ctx, to, &n, from, (int)len)
                     : EVP_DecryptUpdate(a->ctx, to, &n, from, (int)len)) == 1 &&
           (size_t)n == len;
}

bool sr_aead_new(sr_aead *a, sr_aead_kind kind, bool seals)
{
    const EVP_CIPHER *cipher = cipher_of(kind);
    *a = (sr_aead){.ctx = cipher ? EVP_CIPHER_CTX_new() : NULL, .seals = seals};
    if (a->ctx && !begin(a, cipher, NULL, NULL))
        sr_aead_free(a);
    return a->ctx != NULL;
}

void sr_aead_free(sr_aead *a)
{
    EVP_CIPHER_CTX_free(a->ctx);
    a->ctx = NULL;
}

bool sr_aead_key(sr_aead *a, const uint8_t *key)
{
    return begin(a, NULL, key, NULL);
}

bool sr_aead_begin(sr_aead *a, const uint8_t nonce[SR_AEAD_NONCE], const uint8_t *aad, size_t len)
{
    return begin(a, NULL, NULL, nonce) && update(a, NULL, aad, len);
}

bool sr_aead_add(sr_aead *a, uint8_t *to, const void *from, size_t len)
{
    return !len || update(a, to, from, len);
}

static OSSL_PARAM tag_param(const uint8_t *tag)
{
    return (OSSL_PARAM)OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, (void *)(uintptr_t)tag,
                                               SR_AEAD_TAG);
}

bool sr_aead_seal(sr_aead *a, uint8_t tag[SR_AEAD_TAG])
{
    OSSL_PARAM params[] = {tag_param(tag), OSSL_PARAM_END};
    uint8_t none[SR_AEAD_TAG];
    int n = 0;
    return EVP_EncryptFinal_ex(a->ctx, none, &n) == 1 && EVP_CIPHER_CTX_get_params(a->ctx, params) == 1;
}

bool sr_aead_open(sr_aead *a, const uint8_t tag[SR_AEAD_TAG])
{
    OSSL_PARAM params[] = {tag_param(tag), OSSL_PARAM_END};
    uint8_t none[SR_AEAD_TAG];
    int n = 0;
    return EVP_CIPHER_CTX_set_params(a->ctx, params) == 1 && EVP_DecryptFinal_ex(a->ctx, none, &n) == 1;
}

#endif
