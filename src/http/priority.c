#include "priority.h"

#include "token.h"

/* A member of the dictionary (RFC 8941 3.2) without its parameters. */
static sr_bytes without_parameters(sr_bytes member)
{
    const char *end = member.len ? memchr(member.at, ';', member.len) : NULL;
    return sr_trim(end ? sr_bytes_of(member.at, (size_t)(end - member.at)) : member);
}

void sr_priority_read(sr_priority *p, sr_bytes value)
{
    sr_bytes member;
    while (sr_list_next(&value, &member)) {
        member = without_parameters(member);
        if (member.len == 3 && memcmp(member.at, "u=", 2) == 0 && member.at[2] >= '0' &&
            member.at[2] <= '0' + SR_URGENCY_LOW)
            p->urgency = (uint8_t)(member.at[2] - '0');
        else if (sr_bytes_equal(member, SR_BYTES("i")) || sr_bytes_equal(member, SR_BYTES("i=?1")))
            p->incremental = true;
        else if (sr_bytes_equal(member, SR_BYTES("i=?0")))
            p->incremental = false;
    }
}
