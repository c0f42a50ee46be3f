#ifndef SR_KEEPER_H
#define SR_KEEPER_H
/*
 * keeper: a process that has the private keys, and gives them to edges and to nobody else. It serves no
 * client, and contains neither Perl nor the application.
 *
 * It reads its files once, with the rights that the server was started with, and gives them up. A reload
 * starts another keeper. It makes the keys of session tickets, and turns them over; one that replaces another
 * takes those of its predecessor over, so that tickets stay valid.
 *
 * It listens on the line to the supervisor, and heeds notes of its parent only: the supervisor, and processes
 * that it has forked, may have the other end too. A note has one end of a pair of sockets; the keeper sends a
 * set of keys there now, and after each turn of the tickets, until the other end is closed. It ends when the
 * supervisor closes its line, or ends.
 *
 * What it says on its report pipe, or in a check on STDOUT:
 *   PID keys EXPIRES NAME FILE     of each certificate, with seconds since 1970
 *   PID keyscrl EXPIRES NAME FILE  of each CRL, with the name of its CA
 *   PID keysready N                the set is complete, and has N certificates
 *   PID keysfailed WHY
 */
#include "setup.h"

/*
 * Reads the files. False: they are not in order, which was reported. Call it before the rights are given up.
 */
bool sr_keeper_read(sr_setup *s);

/*
 * An sr_keyfiles_tell, with the setup: says that on the report pipe. An edge that reads the files itself says
 * so of CRLs.
 */
void sr_keeper_tell(void *setup, sr_keyfiles_kind kind, const char *file, const char *name, int64_t expires);

/* Serves until it has to end. */
void sr_keeper_run(sr_setup *s);

#endif
