#include "answer.h"

#include "../conn/account.h"
#include "../conn/trouble.h"
#include "log.h"

#include <errno.h>

bool sr_answer_begin(sr_edge *ed, sr_task *task, const sr_head *head)
{
    sr_engine *e = ed->engine;
    sr_exchange *x = task->exchange;
    sr_bytes made;
    if (x->protocol->head(e, x, head, &made))
        return false;
    sr_intake_drop(task);
    x->is_own = true;
    x->given_at = 0;
    sr_log_offer_task(ed, task, made);
    x->protocol->taken(e, x);
    return true;
}

void sr_answer_refuse(sr_edge *ed, sr_task *task, int err)
{
    bool file = err == EAGAIN || err == EIO || err == ESTALE || err == ETIMEDOUT;
    sr_trouble_count(ed->engine, SR_TROUBLE_MEMORY, 1, err);
    sr_intake_refuse(ed->engine, task, 503, file ? SR_REFUSED_FILE : sr_account_lack(err), NULL);
}
