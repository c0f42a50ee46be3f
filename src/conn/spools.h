#ifndef SR_SPOOLS_H
#define SR_SPOOLS_H
/*
 * spools: the temporary files of an edge together: request bodies (body.h) and what slow clients have not
 * read (output.h). Up to --max-temp-file-size, for all edges, and up to what the disk takes, there is room.
 * Without room a response stays in memory, and its worker waits when there is much of that (sr_send_holds);
 * an upload is refused. The slowest client pays (slowest.h).
 *
 * Process: the bytes are counted for the whole process, which is one edge. Thread: one.
 */
#include <stdbool.h>
#include <stdint.h>

struct sr_engine;

typedef struct sr_spools {
    bool due;            /* somebody is to pay (slowest.h) */
    int64_t full_until;  /* monotonic ns of the next try after one has failed */
    uint64_t full_frees; /* what was counted as freed at that time */
} sr_spools;

/* What a file has grown, or what was freed with it. */
void sr_spools_took(uint64_t bytes);
void sr_spools_gave(uint64_t bytes);

extern uint64_t sr_spools_taken; /* written by those two only */
static inline uint64_t sr_spools_bytes(void)
{
    return sr_spools_taken;
}

/* Whether files may grow by that much, as far as --max-temp-file-size says. */
bool sr_spools_allowed(const struct sr_engine *e, uint64_t more);

/* The same while somebody is about to be ended for it: a little more is allowed. */
bool sr_spools_allowed_above(const struct sr_engine *e, uint64_t more);

/* Whether they may grow by that much, and the disk is not known to be full. */
bool sr_spools_room(const struct sr_engine *e, uint64_t more);

/*
 * A file could not be written, with this errno: if the disk is full, there is no room until some is freed, or
 * for a second.
 */
void sr_spools_failed(struct sr_engine *e, int err);

#endif
