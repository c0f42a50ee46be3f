/*
 * fuzz_replay: every target of fuzz/ with its corpus, fuzz/NAME.corpus: one input a line, as C escapes. A
 * target aborts when something is wrong, and says where.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#define FUZZ_TARGET(name) static int fuzz_##name(const uint8_t *data, size_t size)

#include "../../fuzz/chunked.c"
#include "../../fuzz/edge.c"
#include "../../fuzz/forwarded.c"
#include "../../fuzz/grip.c"
#include "../../fuzz/h2fields.c"
#include "../../fuzz/h2session.c"
#include "../../fuzz/item.c"
#include "../../fuzz/logformat.c"
#include "../../fuzz/moments.c"
#include "../../fuzz/proxyline.c"
#include "../../fuzz/request.c"
#include "../../fuzz/response.c"
#include "../../fuzz/ring.c"
#include "../../fuzz/split.c"
#include "../../fuzz/static.c"
#include "../../fuzz/transport.c"
#include "../../fuzz/wsevent.c"
#include "../../fuzz/wsframe.c"

#include "tap.h"

static const struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
    {"chunked", fuzz_chunked},     {"edge", fuzz_edge},           {"forwarded", fuzz_forwarded},
    {"grip", fuzz_grip},           {"h2fields", fuzz_h2fields},   {"h2session", fuzz_h2session},
    {"item", fuzz_item},           {"logformat", fuzz_logformat}, {"moments", fuzz_moments},
    {"proxyline", fuzz_proxyline}, {"request", fuzz_request},     {"response", fuzz_response},
    {"ring", fuzz_ring},           {"split", fuzz_split},         {"static", fuzz_static},
    {"transport", fuzz_transport}, {"wsevent", fuzz_wsevent},     {"wsframe", fuzz_wsframe},
};

/* Turns the escapes of a line into bytes, in place. Returns how many; what dev/fuzz did not write is none. */
static size_t unescape(char *line, size_t len)
{
    static const char names[] = "nrt\\", bytes[] = "\n\r\t\\";
    char *to = line;
    for (char *at = line, *end = line + len; at < end; at++) {
        if (*at != '\\') {
            *to++ = *at;
        } else if (*++at == 'x') {
            char hex[3] = {at[1], at[2], '\0'};
            *to++ = (char)strtoul(hex, NULL, 16);
            at += 2;
        } else {
            MUST(*at && strchr(names, *at));
            *to++ = bytes[strchr(names, *at) - names];
        }
    }
    return (size_t)(to - line);
}

static int replay(const struct target *target)
{
    char path[4096], *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int count = 0;
    snprintf(path, sizeof path, "%.*s../../fuzz/%s.corpus", (int)(strrchr(__FILE__, '/') + 1 - __FILE__),
             __FILE__, target->name);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while ((len = getline(&line, &cap, file)) > 0) {
        if (line[len - 1] == '\n')
            len--;
        size_t size = unescape(line, (size_t)len);
        char *input = fuzz_copy(line, size);
        target->run((const uint8_t *)input, size);
        free(input);
        count++;
    }
    free(line);
    fclose(file);
    return count;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        printf("# %s\n", targets[i].name);
        int count = replay(&targets[i]);
        ok(count > 10, "%s: %d inputs", targets[i].name, count);
    }
    return done_testing();
}
