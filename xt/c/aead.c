/* aead: vectors of those who have specified the ciphers, and what is refused. */
#include "transport/aead.h"

#include "tap.h"

#ifdef SR_TLS

#include <stdlib.h>

enum { MOST = 256 };

/* In hexadecimal digits. */
typedef struct vector {
    sr_aead_kind kind;
    const char *name, *key, *nonce, *aad, *plain, *sealed, *tag;
} vector;

/* D. McGrew, J. Viega: "The Galois/Counter Mode of Operation", test cases 4 and 16; RFC 8439 2.8.2 */
static const vector vectors[] = {
    {SR_AEAD_AES128, "AES-128-GCM", "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf"
     "5"
     "aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b3"
     "9"
     "6a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {SR_AEAD_AES256, "AES-256-GCM", "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf"
     "5"
     "aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6"
     "3"
     "93ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {SR_AEAD_CHACHA, "ChaCha20-Poly1305", "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
     "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c6"
     "4"
     "206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776"
     "f"
     "756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0"
     "a"
     "9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9"
     "d"
     "e576d26586cec64b6116",
     "1ae10b594f09e26a7e902ecbd0600691"},
};

static uint8_t key[MOST], nonce[MOST], aad[MOST], plain[MOST], sealed[MOST], tag[MOST];
static size_t aad_len, len;

static size_t bytes(uint8_t *to, const char *digits)
{
    size_t n = strlen(digits) / 2;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)strtoul((char[]){digits[2 * i], digits[2 * i + 1], 0}, NULL, 16);
    return n;
}

/* In two pieces, the first of `first` bytes. */
static bool run(sr_aead *a, uint8_t *to, const uint8_t *from, size_t first)
{
    return sr_aead_begin(a, nonce, aad, aad_len) && sr_aead_add(a, to, from, first) &&
           sr_aead_add(a, to + first, from + first, len - first);
}

static bool opens(sr_aead *a)
{
    uint8_t got[MOST];
    return run(a, got, sealed, 0) && sr_aead_open(a, tag) && memcmp(got, plain, len) == 0;
}

/* Whether a record is refused as long as a bit at `at` is another one, and opened after that. */
static bool refuses(sr_aead *a, uint8_t *at)
{
    *at ^= 1;
    bool refused = !opens(a);
    *at ^= 1;
    return refused && opens(a);
}

static void check(const vector *v)
{
    sr_aead out, in;
    uint8_t got[MOST], made[SR_AEAD_TAG];
    is_int((long long)bytes(key, v->key), (long long)sr_aead_key_len(v->kind), v->name);
    bytes(nonce, v->nonce);
    bytes(tag, v->tag);
    bytes(sealed, v->sealed);
    aad_len = bytes(aad, v->aad);
    len = bytes(plain, v->plain);
    if (!ok(sr_aead_new(&out, v->kind, true) && sr_aead_new(&in, v->kind, false), "OpenSSL has it"))
        return;
    ok(sr_aead_key(&out, key) && sr_aead_key(&in, key), "takes the key");
    for (size_t first = 0; first <= len; first += 17)
        ok(run(&out, got, plain, first) && sr_aead_seal(&out, made) && memcmp(got, sealed, len) == 0 &&
               memcmp(made, tag, sizeof made) == 0,
           "sealed in two pieces, the first of %d bytes", (int)first);
    memcpy(got, plain, len);
    ok(run(&out, got, got, 0) && sr_aead_seal(&out, made) && memcmp(got, sealed, len) == 0, "in its place");
    ok(opens(&in), "opened");
    memcpy(got, sealed, len);
    ok(run(&in, got, got, 0) && sr_aead_open(&in, tag) && memcmp(got, plain, len) == 0, "in its place");
    ok(refuses(&in, tag) && refuses(&in, tag + SR_AEAD_TAG - 1), "another tag is refused");
    ok(refuses(&in, sealed) && refuses(&in, sealed + len - 1), "other bytes");
    ok(refuses(&in, aad) && refuses(&in, aad + aad_len - 1), "other bytes beside them");
    ok(refuses(&in, nonce) && refuses(&in, nonce + SR_AEAD_NONCE - 1), "another nonce");
    ok(sr_aead_begin(&in, nonce, aad, aad_len) && sr_aead_add(&in, got, sealed, 5) && opens(&in),
       "a record that was not ended is forgotten");
    ok(sr_aead_begin(&out, nonce, aad, aad_len) && sr_aead_seal(&out, made) &&
           sr_aead_begin(&in, nonce, aad, aad_len) && sr_aead_open(&in, made),
       "an empty one");
    key[0] ^= 1;
    ok(sr_aead_key(&in, key) && !opens(&in), "another key");
    key[0] ^= 1;
    ok(sr_aead_key(&in, key) && opens(&in), "and the first again");
    sr_aead_free(&in);
    sr_aead_free(&out);
    sr_aead_free(&out);
    ok(!in.ctx && !out.ctx, "freed");
}

int main(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        check(&vectors[i]);
    return done_testing();
}

#else

int main(void)
{
    printf("1..0 # SKIP this build has no TLS\n");
    return 0;
}

#endif
