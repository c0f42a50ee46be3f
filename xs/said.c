#include "said.h"

#include "sirius.h"

enum { SAID_MAX = 512 }; /* bytes of a line */

typedef struct said_line {
    int rank; /* how much it tells */
    size_t len;
    char text[SAID_MAX];
} said_line;

/* A framework catches what the application dies of, writes it here and answers 500. */
static struct {
    UV serial;            /* of the turn */
    said_line last, best; /* `last` is being written */
} said;

static bool names_place(const said_line *line)
{
    static const char word[] = " line ";
    for (size_t i = 0; i + sizeof word <= line->len; i++)
        if (memcmp(line->text + i, word, sizeof word - 1) == 0 && isDIGIT(line->text[i + sizeof word - 1]))
            return true;
    return false;
}

/* A line that is indented goes on with the one before. */
static void take_last(void)
{
    said_line *last = &said.last;
    if (last->len && !isSPACE(*last->text)) {
        last->rank += names_place(last) ? 2 : 0;
        if (!said.best.len || last->rank >= said.best.rank)
            said.best = *last;
    }
    last->len = 0;
}

static void hear(UV serial, const char *at, size_t len, bool printed)
{
    if (said.serial != serial)
        said.last.len = said.best.len = 0;
    said.serial = serial;
    for (const char *end = at + len; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t n = (size_t)(stop - at), room = SAID_MAX - said.last.len;
        memcpy(said.last.text + said.last.len, at, n < room ? n : room);
        said.last.len += n < room ? n : room;
        said.last.rank = printed;
        if (newline)
            take_last();
        at = newline ? newline + 1 : end;
    }
}

void sirius_said_hear(pTHX_ const char *at, size_t len, bool printed)
{
    const sirius *s = sirius_own(aTHX);
    if (s && s->turn.open && !sirius_forked(s))
        hear(s->turn.serial, at, len, printed);
}

sr_bytes sirius_said(const sirius *s)
{
    if (said.serial != s->turn.serial)
        return sr_bytes_of(NULL, 0);
    take_last();
    return sr_bytes_of(said.best.text, said.best.len);
}
