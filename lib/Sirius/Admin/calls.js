'use strict';

// Where the time of the application goes, and what it has died of. Paths and exceptions are shown as text: others choose them.

const FEW = 10; // paths that are shown at first
const MOST = 50; // and all of them; the others are shown together
const LEAST = 0.05; // seconds in calls without which there is nothing to divide

// Seconds that workers have spent in calls of the application, those that run included
function spent({ calls, workers, now: present }) {
    const running = workers.filter(worker => worker.state === 'busy' && worker.began > 0);
    return running.reduce((sum, worker) => sum + Math.max(0, present - worker.since), calls.seconds);
}

// What workers that were there before have computed since
function computed(answer, before) {
    const then = new Map(before.workers.map(worker => [worker.pid, worker.cpu]));
    return answer.workers.reduce((sum, { pid, cpu }) => sum + (then.has(pid) ? Math.max(0, cpu - then.get(pid)) : 0), 0);
}

// How much of the time of workers is computation, since an answer of some seconds ago
function computing(answer, before) {
    const seconds = answer.now - before.now;
    if (seconds < 0.9 || !before.calls || answer.workers.some(worker => worker.cpu == null)) return '';
    const busy = spent(answer) - spent(before);
    if (busy < LEAST) return 'workers are idle';
    const share = Math.min(1, computed(answer, before) / busy);
    const ago = `last ${Math.round(seconds)} s`;
    return `${ago}: ${show.digits(busy / seconds)} workers busy, computing ${show.percent(share)} of that time, waiting ${show.percent(1 - share)}`;
}

function together(rows, other) {
    if (!rows.length) return other;
    const names = ['calls', 'seconds', 'waited', 'errors', 'share'];
    return Object.fromEntries(names.map(name => [name, rows.reduce((sum, row) => sum + row[name], other ? other[name] : 0)]));
}

class PathTable {
    constructor(section) {
        [this.section, this.whole] = [section, false];
        this.button = section.querySelector('button');
        this.button.addEventListener('click', () => {
            this.whole = !this.whole;
            this.rows(this.calls);
        });
    }

    draw(answer, before) {
        this.calls = answer.calls;
        this.section.hidden = !this.calls || !this.calls.calls;
        if (this.section.hidden) return;
        put(this.section.querySelector('.aside'), computing(answer, before));
        this.rows(this.calls);
    }

    rows({ paths: all, other: rest }) {
        const [paths, other] = [all.slice(0, MOST), together(all.slice(MOST), rest)];
        const shown = this.whole ? paths : paths.slice(0, FEW);
        this.button.hidden = paths.length <= FEW;
        this.button.setAttribute('aria-expanded', String(this.whole));
        put(this.button, this.whole ? `Show ${FEW} paths` : `Show all ${paths.length} paths`);
        fillTable(this.section.querySelector('table'), [
            ['Path', ['share', 'time', 'calls', '50%', '99%', 'errors', 'mean wait'], 'head'],
            ...[...shown, ...other && other.calls ? [{ ...other, path: 'other' }] : []].map(row => [
                show.text(row.path),
                [
                    show.percent(row.share),
                    show.seconds(row.seconds),
                    show.short(row.calls),
                    ...[row.p50, row.p99].map(time => time > 0 ? show.bounded(time, bounds) : '–'),
                    row.errors ? show.short(row.errors) : '–',
                    row.calls ? show.seconds(row.waited / row.calls) : '–',
                ],
                row.errors ? 'long fails' : 'long',
                row.share,
            ]),
        ]);
    }
}

function drawExceptions(section, { exceptions, time }) {
    section.hidden = !exceptions || !exceptions.count;
    if (section.hidden) return;
    put(section.querySelector('.aside'), `${show.count(exceptions.count)} since the start, the last first`);
    const ago = at => `${show.since(Math.max(0, time - at))} ago`;
    fillTable(section.querySelector('table'), [
        ['', ['path', 'count', 'last', 'first'], 'head'],
        ...exceptions.last.map(one => [
            show.text(one.text),
            [show.text(one.path), show.count(one.count), ago(one.at), ago(one.first)],
        ]),
    ]);
}
