/*
 * published: the order of items that wait in an edge, that of src/edge/publish.c; with a qsort that turns
 * equal ones round, as that of some libraries may, and with items that are only noted when they are
 * published.
 */
#include "edge/publish.h"

#include "live/live.h"
#include "net/memfile.h"

static void sort_unstably(void *at, size_t n, size_t size, int (*compare)(const void *, const void *));
static bool note(sr_bytes packed);

#define qsort sort_unstably
#define sr_live_publish(live, packed) note(packed)
#include "edge/publish.c"
#undef sr_live_publish
#undef qsort

#include "tap.h"

#include <stdio.h>
#include <unistd.h>

static char notes[100];

static void sort_unstably(void *at, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    char *all = at, one[sizeof(void *)];
    for (size_t end = n; end > 1 && size == sizeof one; end--) {
        size_t last = 0; /* the first of those that are equal goes to the end */
        for (size_t i = 1; i < end; i++)
            if (compare(all + i * size, all + last * size) > 0)
                last = i;
        memcpy(one, all + last * size, size);
        memmove(all + last * size, all + (end - 1) * size, size);
        memcpy(all + (end - 1) * size, one, size);
    }
}

static bool note(sr_bytes packed)
{
    size_t n = strlen(notes);
    snprintf(notes + n, sizeof notes - n, "%.1s", packed.at + packed.len - 1);
    return true;
}

static void come(sr_edge *ed, uint64_t number, const char *text)
{
    sr_item item = {.number = number, .channel = 1, .stream = 1, .has = SR_ITEM_STREAM};
    struct iovec iov[] = {{&item, sizeof item}, {(char[]){'x', *text}, 2}};
    int fd = sr_memfile("item", iov, 2, false);
    sr_publish_file(ed, fd);
    close(fd);
}

static void are(sr_edge *ed, uint64_t last, const char *want, const char *what)
{
    sr_publish_until(ed, last);
    if (!ok(strcmp(notes, want) == 0, "%s", what))
        printf("# \"%s\", not \"%s\"\n", notes, want);
    notes[0] = '\0';
}

int main(void)
{
    static sr_engine engine;
    static sr_edge edge;
    const uint64_t now = (uint64_t)100000000 << 22;
    uint64_t last;
    engine.now = 100 * SR_SECOND;
    engine.row = &engine.no_row;
    edge.engine = &engine;
    edge.live = (sr_live *)&engine; /* nothing is done with it */
    sr_link_init(&edge.published);
    for (const char *at = "cabed"; *at; at++)
        come(&edge, now + (uint64_t)*at, at);
    ok(sr_publish_waits(&edge, &last) && last == now + 'e', "items wait");
    are(&edge, now + 'd', "abcd", "in the order in which they were made, up to one");
    are(&edge, last, "e", "the others later");
    for (const char *at = "cabed"; *at; at++)
        come(&edge, (uint64_t)*at, at); /* long ago: the time at which they have come counts */
    come(&edge, now - 1, "0");
    come(&edge, now + 1, "1");
    are(&edge, now, "0cabed", "those of the same time as they have come");
    come(&edge, 1, "f");
    come(&edge, 1, "g");
    are(&edge, now + 1, "fg1", "and so when some were left");
    ok(!sr_publish_waits(&edge, &last), "none waits");
    is_int((long long)atomic_load(&engine.row->counters.unpublished), 0, "none was dropped");
    return done_testing();
}
