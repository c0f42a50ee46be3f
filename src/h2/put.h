#ifndef SR_H2_PUT_H
#define SR_H2_PUT_H
/* put: responses on a stream. See sr_protocol. */
#include "state.h"

sr_response_error sr_h2_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made);
void sr_h2_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last);
void sr_h2_file(sr_engine *e, sr_exchange *x, const sr_content *content);
sr_output *sr_h2_output(const sr_exchange *x);
bool sr_h2_settle(sr_engine *e, sr_exchange *x);
void sr_h2_end(sr_engine *e, sr_exchange *x);
void sr_h2_more(sr_engine *e, sr_exchange *x);
void sr_h2_cut(sr_engine *e, sr_exchange *x);

#endif
