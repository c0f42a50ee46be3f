#include "facts.h"

static const char *const names[SR_FACTS] = {
    [SR_FACT_PROTOCOL] = "SSL_PROTOCOL",      [SR_FACT_CIPHER] = "SSL_CIPHER",
    [SR_FACT_VERIFY] = "SSL_CLIENT_VERIFY",   [SR_FACT_SNI] = "SSL_TLS_SNI",
    [SR_FACT_S_DN] = "SSL_CLIENT_S_DN",       [SR_FACT_I_DN] = "SSL_CLIENT_I_DN",
    [SR_FACT_SERIAL] = "SSL_CLIENT_M_SERIAL", [SR_FACT_CERT] = "SSL_CLIENT_CERT",
};

const char *sr_fact_name(sr_fact which)
{
    return names[which];
}

bool sr_fact_find(sr_bytes name, sr_fact *which)
{
    for (int i = 0; i < SR_FACTS; i++)
        if (sr_bytes_equal(name, sr_bytes_of(names[i], strlen(names[i])))) {
            *which = (sr_fact)i;
            return true;
        }
    return false;
}

sr_bytes sr_facts_get(sr_bytes run, sr_fact which)
{
    sr_facts facts;
    size_t at = sizeof facts;
    if (run.len < sizeof facts)
        return (sr_bytes){0};
    memcpy(&facts, run.at, sizeof facts);
    for (int i = 0; i < (int)which; i++)
        at += facts.len[i] > 0 ? (size_t)facts.len[i] : 0;
    if (facts.len[which] < 0 || at > run.len || (size_t)facts.len[which] > run.len - at)
        return (sr_bytes){0};
    return sr_bytes_of(run.at + at, (size_t)facts.len[which]);
}

bool sr_facts_make(sr_buffer *to, const sr_bytes values[SR_FACTS])
{
    sr_facts facts;
    size_t sum = sizeof facts;
    for (int i = 0; i < SR_FACTS; i++) {
        if (values[i].len > SR_FACTS_BYTES_MAX)
            return false;
        facts.len[i] = values[i].at ? (int32_t)values[i].len : SR_FACT_NONE;
        sum += values[i].at ? values[i].len : 0;
    }
    if (sum > SR_FACTS_BYTES_MAX || !sr_buffer_reserve(to, sum))
        return false;
    sr_buffer_add(to, &facts, sizeof facts);
    for (int i = 0; i < SR_FACTS; i++)
        if (values[i].at)
            sr_buffer_add_bytes(to, values[i]);
    return true;
}
