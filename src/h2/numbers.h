#ifndef SR_H2_NUMBERS_H
#define SR_H2_NUMBERS_H
/*
 * numbers: which streams there were, and the frames that are errors of the connection for that reason.
 * nghttp2 takes all numbers below the newest that it does not know for streams that are closed, also those
 * that were skipped (RFC 9113 5.1.1), and ignores frames of closed streams (5.1) and, as it was told, of the
 * priorities of RFC 7540.
 */
#include "framehead.h"
#include "state.h"

/*
 * The error code, to be called with each whole frame before nghttp2 reads it; 0: it is fine. Notes the
 * numbers of new streams.
 */
uint32_t sr_numbers_wrong(sr_session *s, const sr_framehead *f);

/*
 * The server has reset this stream, or never opened it. A frame may still come that its client has sent
 * before it heard of it.
 */
void sr_numbers_reset(sr_session *s, int32_t id);

#endif
