#ifndef SR_DESCRIPTORS_H
#define SR_DESCRIPTORS_H
/* descriptors: how many files a process may have open. Inherited by its children. */
#include <stdint.h>

/* Raises the soft limit (RLIMIT_NOFILE) to the hard one, as far as that goes, and returns what is allowed
 * then. */
uint64_t sr_descriptors_raise(void);

#endif
