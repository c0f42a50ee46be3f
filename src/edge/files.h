#ifndef SR_FILES_H
#define SR_FILES_H
/*
 * files: sends the files of --static and --acme-webroot. This needs no worker, so files are sent while all
 * workers are busy and the queue is full.
 *
 * Called by: dispatch and plain.
 * Failure: without memory or a descriptor the client gets 503. A file that becomes shorter while it is sent,
 * or that cannot be read, ends the connection, so that the client sees that something is missing.
 */
#include "../conn/intake.h"
#include "edge.h"

/*
 * Answers a request below a prefix of these folders. False: the request is for somebody else, and nothing was
 * done. True: the task was taken over, and the connection may be closed and freed.
 */
bool sr_files_answer(sr_edge *ed, sr_mounts *mounts, sr_task *task);

#endif
