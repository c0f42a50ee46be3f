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

void sr_facts_all(sr_bytes run, sr_bytes values[SR_FACTS])
{
    sr_facts facts;
    size_t at = sizeof facts;
    bool whole = run.len >= sizeof facts;
    if (whole)
        memcpy(&facts, run.at, sizeof facts);
    for (int i = 0; i < SR_FACTS; i++) {
        values[i] = (sr_bytes){0};
        if (!whole || facts.len[i] < 0)
            continue;
        size_t len = (size_t)facts.len[i];
        whole = len <= run.len - at;
        if (whole)
            values[i] = sr_bytes_of(run.at + at, len);
        at += whole ? len : 0;
    }
}

sr_bytes sr_facts_get(sr_bytes run, sr_fact which)
{
    sr_bytes values[SR_FACTS];
    sr_facts_all(run, values);
    return values[which];
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
