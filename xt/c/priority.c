/* priority: what values of the field Priority say. */
#include "../../src/http/priority.h"

#include "guard.h"
#include "tap.h"

static void says(const char *value, int urgency, bool incremental)
{
    sr_priority p = {SR_URGENCY_DEFAULT, false};
    sr_priority_read(&p, sr_bytes_of(guarded(value, strlen(value)), strlen(value)));
    if (!ok(p.urgency == urgency && p.incremental == incremental, "\"%s\"", value))
        printf("# got %d %d\n", p.urgency, p.incremental);
}

int main(void)
{
    says("", 3, false);
    says("u=0", 0, false);
    says("u=7", 7, false);
    says("i", 3, true);
    says("u=5, i", 5, true);
    says("i,u=1", 1, true);
    says("  u=1 ,\ti=?1", 1, true);
    says("i, i=?0", 3, false);
    says("u=1, u=2", 2, false);
    says("u=2;a=b, i;c", 2, true);
    says("x=1, u=4, y=(1 2), z=\"u=0, i\"", 4, false);

    printf("# nothing\n");
    says("u=8", 3, false);
    says("u=-1", 3, false);
    says("u=10", 3, false);
    says("u=1.0", 3, false);
    says("u=a", 3, false);
    says("u", 3, false);
    says("u=", 3, false);
    says("U=1, I", 3, false);
    says("i=1", 3, false);
    says("i=?2", 3, false);
    says(",,;,=", 3, false);
    says("\"", 3, false);

    sr_priority p = {1, true};
    sr_priority_read(&p, SR_BYTES("u=9"));
    ok(p.urgency == 1 && p.incremental, "what is not said stays");
    sr_priority_read(&p, SR_BYTES("i=?0"));
    ok(p.urgency == 1 && !p.incremental, "also beside what is");
    return done_testing();
}
