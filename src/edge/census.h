#ifndef SR_CENSUS_H
#define SR_CENSUS_H
/*
 * census: which channels have subscribers, for the operator. Without --hold there are none.
 *
 * In the file there is a line "CHANNELS SUBSCRIPTIONS", then a line "SUBSCRIBERS MESSAGES NAME" for each of
 * those with the most subscribers. Its first byte is written last, so that who waits for it sees when all is
 * there.
 */
#include "edge.h"

enum { SR_CENSUS_MAX = 256 };

/* The descriptor stays the caller's. */
void sr_census_file(sr_edge *ed, int fd);

#endif
