#include "protocol.h"

#include "spools.h"

#include <unistd.h>

void sr_intake_drop(sr_task *task)
{
    if (task->body_fd < 0)
        return;
    close(task->body_fd);
    task->body_fd = -1;
    sr_spools_gave(task->body_length);
}

void sr_intake_refuse(sr_engine *e, sr_task *task, int status, sr_refusal why, const char *rule)
{
    sr_intake_drop(task);
    task->exchange->protocol->refuse(e, task->exchange, status, why, rule);
}
