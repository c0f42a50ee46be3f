#include "layout.h"

#include "common.h"
#include "door.h"
#include "queue.h"
#include "scoreboard.h"
#include "sleepers.h"

#include <stdio.h>
#include <string.h>

void sr_layout_number(uint32_t layout, char out[24])
{
    snprintf(out, 24, "%u.%u", layout >> 24, layout & 0xffffff);
}

void sr_layout_text(char out[SR_LAYOUT_TEXT])
{
    char queue[24], scoreboard[24];
    sr_layout_number(SR_QUEUE_LAYOUT, queue);
    sr_layout_number(SR_SCOREBOARD_LAYOUT, scoreboard);
    snprintf(out, SR_LAYOUT_TEXT, "queue:%s,scoreboard:%s.%zu,sleepers:%zu,edges:%zu,notes:%zu", queue,
             scoreboard, sizeof(sr_board), sizeof(sr_sleepers), sizeof(sr_common), sizeof(sr_message));
}

/* The value of the part with this name; its length, 0: there is none. */
static size_t value(const char *text, const char *name, size_t len, const char **at)
{
    for (const char *part = text; part; part = strchr(part, ',')) {
        part += *part == ',';
        if (strncmp(part, name, len) != 0 || part[len] != ':')
            continue;
        *at = part + len + 1;
        return strcspn(*at, ",");
    }
    return 0;
}

bool sr_layout_differs(const char *theirs, char why[SR_LAYOUT_WHY])
{
    char ours[SR_LAYOUT_TEXT];
    int used = 0;
    sr_layout_text(ours);
    why[0] = '\0';
    for (const char *part = ours; part; part = strchr(part, ',')) {
        part += *part == ',';
        const char *here = NULL, *there = NULL;
        size_t len = strcspn(part, ":"), n = value(ours, part, len, &here);
        size_t m = value(theirs, part, len, &there);
        if (!m || (n == m && memcmp(here, there, n) == 0))
            continue;
        used += snprintf(why + used, (size_t)(SR_LAYOUT_WHY - used), "%s%.*s %.*s there, %.*s here",
                         used ? "; " : "", (int)len, part, m < 40 ? (int)m : 40, there, (int)n, here);
        if (used >= SR_LAYOUT_WHY)
            break;
    }
    return used;
}
