/*
 * ring: the reader against a writer that writes anything anywhere at any moment. What it shows lies in the
 * ring, it never stands still without an end, and it takes no more than was ever said to be there.
 * Judges: src/share/ring.c
 *
 * Input: operations, a byte each with what it needs after it.
 */
#include "share/ring.h"

#include "fuzz.h"

static void ring_check(const sr_ring *ring, const sr_record *r, const char *payload)
{
    MUST(r->bytes >= sizeof *r && r->bytes <= SR_RECORD_MAX && r->kind != 0);
    MUST(payload >= ring->data + sizeof *r && payload + (r->bytes - sizeof *r) <= ring->data + SR_RING_BYTES);
}

FUZZ_TARGET(ring)
{
    static sr_ring *shared;
    sr_reader reader;
    sr_record r;
    const char *payload;
    uint32_t at = 0;
    bool shown = false, bad = false;
    if (!shared)
        shared = aligned_alloc(64, sizeof *shared);
    MUST(shared);
    memset(shared, 0, sizeof *shared);
    sr_reader_init(&reader, shared);
    for (size_t i = 0; i + 4 <= size && !bad;) {
        uint8_t op = data[i], a = data[i + 1], b = data[i + 2], len = data[i + 3];
        i += 4;
        switch (op % 6) {
        case 0: /* bytes, at the writer's place or anywhere */
            if (op & 64)
                at = ((uint32_t)a << 8 | b) & ~7u;
            for (uint32_t n = 0; n < len && i < size; n++)
                shared->data[(at + n) % SR_RING_BYTES] = (char)data[i++];
            break;
        case 1: /* a header */
        {
            sr_record evil = {.bytes = (uint32_t)(a << 8 | b), .kind = len % 4};
            for (size_t n = 0; n < sizeof evil; n++)
                shared->data[(at + n) % SR_RING_BYTES] = ((const char *)&evil)[n];
            break;
        }
        case 2:
            atomic_fetch_add(&shared->put, (uint32_t)((a << 8 | b) & (op & 64 ? 0xffff : 0xfff8)));
            at = atomic_load(&shared->put) % SR_RING_BYTES & ~7u;
            break;
        case 3: /* as an honest writer */
        {
            if (atomic_load(&shared->put) % 8)
                break;
            sr_record *w = sr_ring_reserve(shared, (size_t)(a << 8 | b) % (SR_RECORD_MAX - sizeof *w));
            if (w) {
                *w = (sr_record){.kind = 1};
                sr_ring_commit(shared, w, (size_t)(a << 8 | b) % (SR_RECORD_MAX - sizeof *w));
                at = atomic_load(&shared->put) % SR_RING_BYTES & ~7u;
            }
            break;
        }
        case 4: {
            sr_ring_result got = sr_ring_next(&reader, &r, &payload);
            bad = got == SR_RING_BAD;
            shown = got == SR_RING_RECORD;
            if (shown)
                ring_check(shared, &r, payload);
            break;
        }
        default:
            if (!shown)
                break;
            free(fuzz_copy(payload, r.bytes - sizeof r)); /* readable, whatever has changed since */
            sr_ring_done(&reader);
            sr_ring_tell(&reader);
            shown = false;
        }
        MUST(reader.taken % 8 == 0);
    }
    return 0;
}
