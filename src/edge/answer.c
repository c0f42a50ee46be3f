#include "answer.h"

#include "../conn/account.h"
#include "../conn/finish.h"
#include "../conn/trouble.h"
#include "log.h"

#include <errno.h>

void sr_answer_begin(sr_edge *ed, sr_task *task, const sr_response *r, size_t len)
{
    sr_engine *e = ed->engine;
    sr_exchange *x = task->exchange;
    sr_intake_drop(task);
    x->keep_alive = r->keep_alive;
    x->is_own = true;
    x->given_at = 0;
    sr_account_head(x, r->status, len);
    sr_log_offer_task(ed, task, sr_bytes_of(sr_buffer_at(&ed->head), len));
    if (!e->intake.in_scratch) /* its bytes go now; in scratch they stay until more are read */
        sr_accesslog_keep(e, x);
    sr_intake_close(e, x->conn);
}

void sr_answer_end(sr_edge *ed, sr_exchange *x)
{
    sr_finish(ed->engine, x);
    sr_log_offered(ed);
}

void sr_answer_refuse(sr_edge *ed, sr_task *task, int err)
{
    bool file = err == EAGAIN || err == EIO || err == ESTALE || err == ETIMEDOUT;
    sr_trouble_count(ed->engine, SR_TROUBLE_MEMORY, 1, err);
    sr_intake_refuse(ed->engine, task, 503, file ? SR_REFUSED_FILE : sr_account_lack(err));
}
