#ifndef SR_MEMFILE_H
#define SR_MEMFILE_H
/*
 * memfile: files in memory, by which bytes that are too many for a message pass to another process. Any
 * thread.
 */
#include <stdbool.h>
#include <sys/uio.h>

/*
 * Makes one of these pieces, close-on-exec. If `sealed`, nobody can change it any more. `name` is what /proc
 * shows. -1 with errno.
 */
int sr_memfile(const char *name, const struct iovec *iov, int n, bool sealed);

/*
 * Makes one of `bytes` zeros, to be mapped, which can be sealed. A portable build knows no seals. -1 with
 * errno: EFBIG beyond RLIMIT_FSIZE, without its signal.
 */
int sr_memfile_zeros(const char *name, size_t bytes);

#endif
