#ifndef SR_TEMPFILE_H
#define SR_TEMPFILE_H
/*
 * tempfile: unlinked temporary files for what is too large for memory; whole reads and writes of any file.
 * Any thread.
 */
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Makes a file without a name in `dir`, close-on-exec, mode 0600. -1 with errno. Nothing is left after kill
 * -9.
 */
int sr_tempfile_open(const char *dir);

/*
 * From now on all files are made below a descriptor of `dir`, whatever sr_tempfile_open is given: for a
 * process that may open nothing by its path. Called once, before there are threads. Returns the descriptor,
 * which stays open, or -1 with errno.
 */
int sr_tempfile_stay(const char *dir);

/*
 * Writes all of it but the first `skip` bytes at `offset`. Returns 0, or -1 with errno as sr_tempfile_write;
 * then some of it may have been written.
 */
int sr_tempfile_put(int fd, const struct iovec *iov, int n, size_t skip, off_t offset);

/* Writes all of it. Returns 0, or -1 with errno: ENOSPC; EFBIG beyond RLIMIT_FSIZE, without its signal. */
int sr_tempfile_write(int fd, const char *at, size_t len);

/*
 * Reads `len` bytes at `offset`. Returns how many it has read, fewer only where the file ends; -1 with errno.
 */
ssize_t sr_tempfile_read(int fd, char *at, size_t len, off_t offset);

#endif
