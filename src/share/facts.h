#ifndef SR_FACTS_H
#define SR_FACTS_H
/*
 * facts: what the edge tells a worker about a connection with TLS: protocol, cipher, certificate of the
 * client. They are passed with each request, behind its body (queue.h).
 *
 * A run of bytes: an sr_facts, then the values that it has the lengths of, without a separator. The edge
 * writes it; a worker only reads. Any thread.
 */
#include "../base/buffer.h"

typedef enum sr_fact {
    SR_FACT_PROTOCOL, /* "TLSv1.3" */
    SR_FACT_CIPHER,   /* "TLS_AES_128_GCM_SHA256" */
    SR_FACT_VERIFY,   /* "NONE", "SUCCESS" */
    SR_FACT_SNI,      /* the name that the client has asked for */
    SR_FACT_S_DN,     /* of the client's certificate: subject, issuer, serial number, all of it as PEM */
    SR_FACT_I_DN,
    SR_FACT_SERIAL,
    SR_FACT_CERT,
    SR_FACTS,
} sr_fact;

enum { SR_FACT_NONE = -1, SR_FACTS_BYTES_MAX = 64 * 1024 };

typedef struct sr_facts {
    int32_t len[SR_FACTS]; /* SR_FACT_NONE: there is no such value */
} sr_facts;

/* By which name applications and log formats know it: "SSL_PROTOCOL". Static. */
const char *sr_fact_name(sr_fact which);
bool sr_fact_find(sr_bytes name, sr_fact *which);

/* All values; at NULL: there is none, or the run is not whole. */
void sr_facts_all(sr_bytes run, sr_bytes values[SR_FACTS]);

/* One of them. */
sr_bytes sr_facts_get(sr_bytes run, sr_fact which);

/* Writes the run. A value with at NULL is absent. False: no memory, or more than SR_FACTS_BYTES_MAX. */
bool sr_facts_make(sr_buffer *to, const sr_bytes values[SR_FACTS]);

#endif
