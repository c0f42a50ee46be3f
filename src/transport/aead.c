#ifdef SR_TLS

#include "aead.h"

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <string.h>
#include <strings.h>

struct sr_aead_cipher {
    EVP_CIPHER *fetched; /* holds the provider; never freed */
    size_t key_len;
    void *provider;
    OSSL_FUNC_cipher_newctx_fn *make;
    OSSL_FUNC_cipher_freectx_fn *free;
    OSSL_FUNC_cipher_encrypt_init_fn *encrypt;
    OSSL_FUNC_cipher_decrypt_init_fn *decrypt;
    OSSL_FUNC_cipher_update_fn *update;
    OSSL_FUNC_cipher_final_fn *final;
    OSSL_FUNC_cipher_get_ctx_params_fn *get;
    OSSL_FUNC_cipher_set_ctx_params_fn *set;
};

size_t sr_aead_key_len(sr_aead_kind kind)
{
    return kind == SR_AEAD_AES128 ? 16 : 32;
}

static void take(struct sr_aead_cipher *c, const OSSL_DISPATCH *function)
{
    for (; function->function_id; function++)
        switch (function->function_id) {
        case OSSL_FUNC_CIPHER_NEWCTX:
            c->make = OSSL_FUNC_cipher_newctx(function);
            break;
        case OSSL_FUNC_CIPHER_FREECTX:
            c->free = OSSL_FUNC_cipher_freectx(function);
            break;
        case OSSL_FUNC_CIPHER_ENCRYPT_INIT:
            c->encrypt = OSSL_FUNC_cipher_encrypt_init(function);
            break;
        case OSSL_FUNC_CIPHER_DECRYPT_INIT:
            c->decrypt = OSSL_FUNC_cipher_decrypt_init(function);
            break;
        case OSSL_FUNC_CIPHER_UPDATE:
            c->update = OSSL_FUNC_cipher_update(function);
            break;
        case OSSL_FUNC_CIPHER_FINAL:
            c->final = OSSL_FUNC_cipher_final(function);
            break;
        case OSSL_FUNC_CIPHER_GET_CTX_PARAMS:
            c->get = OSSL_FUNC_cipher_get_ctx_params(function);
            break;
        case OSSL_FUNC_CIPHER_SET_CTX_PARAMS:
            c->set = OSSL_FUNC_cipher_set_ctx_params(function);
            break;
        default:
            break;
        }
}

/* `names`: separated by colons, as a provider tells them. */
static bool is_named(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (;; names++) {
        if (strncasecmp(names, name, len) == 0 && (!names[len] || names[len] == ':'))
            return true;
        if (!(names = strchr(names, ':')))
            return false;
    }
}

static bool find(struct sr_aead_cipher *c, const char *name)
{
    c->fetched = EVP_CIPHER_fetch(NULL, name, NULL);
    const OSSL_PROVIDER *provider = c->fetched ? EVP_CIPHER_get0_provider(c->fetched) : NULL;
    int changes = 0; /* set: the functions hold for the moment only */
    const OSSL_ALGORITHM *a =
        provider ? OSSL_PROVIDER_query_operation(provider, OSSL_OP_CIPHER, &changes) : NULL;
    while (a && a->algorithm_names && !is_named(a->algorithm_names, name))
        a++;
    if (!a || !a->algorithm_names || changes)
        return false;
    c->provider = OSSL_PROVIDER_get0_provider_ctx(provider);
    take(c, a->implementation);
    return c->make && c->free && c->encrypt && c->decrypt && c->update && c->final && c->get && c->set;
}

/* NULL: it is unknown. A look-up costs as much as a record, so there is one. */
static const struct sr_aead_cipher *cipher_of(sr_aead_kind kind)
{
    static const char *const names[SR_AEADS] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};
    static struct sr_aead_cipher found[SR_AEADS];
    static bool looked[SR_AEADS], known[SR_AEADS];
    if (!looked[kind]) {
        looked[kind] = true;
        found[kind].key_len = sr_aead_key_len(kind);
        known[kind] = find(&found[kind], names[kind]);
        ERR_clear_error();
    }
    return known[kind] ? &found[kind] : NULL;
}

static bool begin(sr_aead *a, const uint8_t *key, const uint8_t *nonce)
{
    size_t key_len = key ? a->of->key_len : 0, nonce_len = nonce ? SR_AEAD_NONCE : 0;
    return (a->seals ? a->of->encrypt : a->of->decrypt)(a->ctx, key, key_len, nonce, nonce_len, NULL) == 1;
}

bool sr_aead_new(sr_aead *a, sr_aead_kind kind, bool seals)
{
    *a = (sr_aead){.of = cipher_of(kind), .seals = seals};
    a->ctx = a->of ? a->of->make(a->of->provider) : NULL;
    return a->ctx != NULL;
}

void sr_aead_free(sr_aead *a)
{
    if (a->ctx)
        a->of->free(a->ctx);
    a->ctx = NULL;
}

bool sr_aead_key(sr_aead *a, const uint8_t *key)
{
    return begin(a, key, NULL);
}

bool sr_aead_begin(sr_aead *a, const uint8_t nonce[SR_AEAD_NONCE], const uint8_t *aad, size_t len)
{
    size_t n = 0;
    return begin(a, NULL, nonce) && a->of->update(a->ctx, NULL, &n, len, aad, len) == 1;
}

bool sr_aead_add(sr_aead *a, uint8_t *to, const void *from, size_t len)
{
    size_t n = 0;
    return !len || (a->of->update(a->ctx, to, &n, len, from, len) == 1 && n == len);
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
    size_t n = 0;
    return a->of->final(a->ctx, none, &n, sizeof none) == 1 && a->of->get(a->ctx, params) == 1;
}

bool sr_aead_open(sr_aead *a, const uint8_t tag[SR_AEAD_TAG])
{
    OSSL_PARAM params[] = {tag_param(tag), OSSL_PARAM_END};
    uint8_t none[SR_AEAD_TAG];
    size_t n = 0;
    return a->of->set(a->ctx, params) == 1 && a->of->final(a->ctx, none, &n, sizeof none) == 1;
}

#endif
