/* layout: this build, and another one */
#include "share/layout.h"
#include "share/queue.h"
#include "share/scoreboard.h"

#include "tap.h"

#include <stdlib.h>

/* A copy of our text in which the part has another value. */
static void changed(const char *part, const char *value, char out[SR_LAYOUT_TEXT])
{
    char ours[SR_LAYOUT_TEXT];
    sr_layout_text(ours);
    char *at = strstr(ours, part), *end = at + strcspn(at, ",");
    snprintf(out, SR_LAYOUT_TEXT, "%.*s%s:%s%s", (int)(at - ours), ours, part, value, end);
}

int main(void)
{
    char ours[SR_LAYOUT_TEXT], theirs[SR_LAYOUT_TEXT], why[SR_LAYOUT_WHY], number[24];
    static const char *const parts[] = {"queue", "scoreboard", "sleepers", "edges", "notes"};
    sr_layout_text(ours);
    ok(strlen(ours) < SR_LAYOUT_TEXT - 1, "the text fits: %s", ours);
    ok(!strpbrk(ours, " =\n"), "and is one word");
    ok(!sr_layout_differs(ours, why) && !*why, "a build is like itself");
    ok(!sr_layout_differs("", why), "nothing is said: nothing differs");
    ok(!sr_layout_differs("wings:2", why), "a part that this build does not know");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        changed(parts[i], "99.1", theirs);
        ok(sr_layout_differs(theirs, why), "another layout of %s", parts[i]);
        ok(strncmp(why, parts[i], strlen(parts[i])) == 0 && strstr(why, " 99.1 there, ") && !strchr(why, ';'),
           "says so, and nothing else: %s", why);
    }
    sr_layout_number(SR_QUEUE_LAYOUT, number);
    changed("queue", "6.1", theirs);
    sr_layout_differs(theirs, why);
    ok(strstr(why, number), "the value of this build is in it: %s", why);
    ok(sr_layout_differs("queue:1,scoreboard:2,sleepers:3,edges:4,notes:5", why), "all of them");
    ok(strstr(why, "queue 1 there") && strstr(why, "; notes 5 there"), "each is named: %s", why);
    memset(theirs, 'x', sizeof theirs - 1);
    memcpy(theirs, "queue:", 6);
    theirs[sizeof theirs - 1] = '\0';
    ok(sr_layout_differs(theirs, why) && strlen(why) < SR_LAYOUT_WHY, "a value that is too long is cut");
    return done_testing();
}
