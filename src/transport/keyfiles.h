#ifndef SR_KEYFILES_H
#define SR_KEYFILES_H
/*
 * keyfiles: reads certificates and keys from files, checks them, and makes a set of keys (keyset.h) of them.
 *
 * Owner: the caller, of all texts and of the set. Called by processes without Perl only, with the rights to
 * read the files. Failure: false, and `why` names the file or option and what is wrong with it.
 */
#include "keyset.h"

typedef struct sr_keyfiles {
    const char **certs,
        **keys;        /* each key belongs to the certificate at the same place; owned, freed by _free */
    const char **crls; /* of the CAs of `ca`; owned likewise */
    size_t n_certs, n_keys, n_crls; /* fewer keys: they are in the files of the certificates */
    const char *dir; /* DIR/NAME/fullchain.pem and privkey.pem; or DIR/live/NAME/... One that has
                               expired is used, after the others, if another is valid */
    const char *ca, *verify, *min, *ciphers; /* NULL: not set */
    bool self_signed;                        /* makes a certificate for this machine, */
    const char *self_file;                   /* and keeps it there, with its key; NULL: nowhere */
} sr_keyfiles;

typedef enum sr_keyfiles_kind { SR_KEYFILES_CERT, SR_KEYFILES_CRL } sr_keyfiles_kind;

/*
 * Of one certificate: the file, the first of its names, and the seconds since 1970 at which it expires. Of
 * one CRL: the file, the name of the CA that has issued it, and when the next one is due.
 */
typedef void sr_keyfiles_tell(void *with, sr_keyfiles_kind kind, const char *file, const char *name,
                              int64_t expires);

bool sr_keyfiles_cert(sr_keyfiles *from, const char *path); /* adds one; false: no memory. Likewise: */
bool sr_keyfiles_key(sr_keyfiles *from, const char *path);
bool sr_keyfiles_crl(sr_keyfiles *from, const char *path);
bool sr_keyfiles_any(const sr_keyfiles *from); /* whether there is anything to read */

/*
 * Appends to `set`, which sr_keyset_begin has begun. On failure the caller wipes it as well. The keys of
 * tickets are not added.
 */
bool sr_keyfiles_read(const sr_keyfiles *from, sr_buffer *set, sr_keyfiles_tell *tell, void *with,
                      char why[SR_KEYSET_WHY]);
void sr_keyfiles_free(sr_keyfiles *from);

/* A new key for tickets. False: the system has no random numbers. */
bool sr_keyfiles_ticket(sr_ticket_key *key, int64_t since);

#endif
