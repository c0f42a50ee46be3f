'use strict';

// Asks for status.json and shows it.

const EVERY = 500; // ms between two looks
const PATIENCE = 3000; // ms that an answer may take
const RECENT = 10; // seconds over which present rates and percentiles are taken

const byId = id => document.getElementById(id);
const now = () => performance.now() / 1000;

const samples = []; // of the last SPAN seconds, one for each look
let looks = []; // the whole answers of the last RECENT seconds
let status = null; // the last one
let failing = null; // since when there is no answer, and why
let cursor = null; // the time that the pointer is at
let paused = false;
let timer;

// Items are a class and a text
function fillList(list, items) {
    while (list.children.length > items.length) list.lastChild.remove();
    items.forEach(([className, text], i) => {
        const item = list.children[i] || list.appendChild(document.createElement('li'));
        item.className = className;
        put(item, text);
    });
}

// Rows are a head, texts, a class, and how long a bar is drawn, from 0 to 1
function fillTable(table, rows) {
    while (table.rows.length > rows.length) table.deleteRow(-1);
    rows.forEach(([head, texts, className = '', bar = 0], i) => {
        const row = table.rows[i] || table.insertRow();
        row.className = className;
        row.style.setProperty('--bar', `${(bar * 100).toFixed(1)}%`);
        while (row.cells.length > texts.length + 1) row.deleteCell(-1);
        [head, ...texts].forEach((text, column) => {
            const kind = column ? 'td' : 'th';
            put(row.cells[column] || row.appendChild(document.createElement(kind)), text);
        });
    });
}

// What a sample says in words: the figure, what it is, and the others by their colours
const words = {
    requests: s => [
        show.short(s.rate || 0), 'a second',
        [['errors', s.errors ? `${show.short(s.errors)} errors (5xx) a second` : 'no errors (5xx)']],
    ],
    latency: s => s.p50 === null ? ['–', 'no requests', []] : [
        show.seconds(s.p50), 'median',
        [['p90', `90 % in ${show.seconds(s.p90)}`], ['p99', `99 % in ${show.seconds(s.p99)}`]],
    ],
    load: s => [
        show.count(s.busy), `of ${show.count(s.workers)}`,
        [['queued', s.queued ? `${show.count(s.queued)} waiting for a worker` : 'none waits for a worker']],
    ],
    connections: s => [
        show.short(s.open), 'open',
        [['active', `${show.short(s.active)} active`], ['open', `${show.short(s.open - s.active)} idle`]],
    ],
};

const plots = Object.entries({
    requests: { series: ['rate', 'errors'], area: ['rate', 'errors'], least: 10, mark: show.short },
    latency: { series: ['p99', 'p90', 'p50'], scale: 'log', least: 0.001, mark: show.seconds },
    load: { series: ['workers', 'busy', 'queued'], area: ['busy', 'queued'], least: 2, mark: show.short },
    connections: { series: ['open', 'active'], area: ['open', 'active'], least: 10, mark: show.short },
}).map(([id, options]) => ({ figure: byId(id), plot: new Plot(byId(id), options), words: words[id] }));

const tiles = new Tiles(byId('workers'), byId('tile'));

const allBuckets = ({ buckets, count }) => [...buckets, [Infinity, count]];

function record(answer) {
    const t = now();
    const { totals, connections, workers } = answer;
    looks = looks.filter(look => look.t > t - RECENT && look.answer.started === answer.started);
    const before = looks.filter(look => look.t <= t - 0.9).pop();
    const rate = count => {
        const seconds = before ? answer.now - before.answer.now : 0;
        return seconds > 0 ? Math.max(0, (count(totals) - count(before.answer.totals)) / seconds) : null;
    };
    const recent = looks.length
        ? between(allBuckets(looks[0].answer.latency), allBuckets(answer.latency)) : [];
    samples.push({
        t,
        rate: rate(counts => counts.requests),
        errors: rate(counts => counts.responses[5] || 0) || null, // none: nothing red at the ground
        p50: quantile(recent, 0.5),
        p90: quantile(recent, 0.9),
        p99: quantile(recent, 0.99),
        busy: workers.filter(worker => worker.began > 0).length,
        workers: workers.length,
        queued: answer.queued + connections.waiting || null,
        open: connections.open,
        active: Math.max(0, connections.open - connections.idle),
    });
    while (samples[0].t < t - SPAN - GAP) samples.shift();
    looks.push({ t, answer });
}

// The one line that says how things are: the worst of what is true
function verdict() {
    if (paused) return ['quiet', 'Paused'];
    if (failing) return ['bad', `No answer for ${show.age(now() - failing.since)}: ${failing.why}`];
    if (!status) return ['quiet', 'Connecting'];
    const { workers } = status;
    const { queued, errors } = samples[samples.length - 1];
    const up = workers.filter(worker => worker.state === 'idle' || worker.state === 'busy');
    const ages = workers.filter(worker => worker.began > 0).map(worker => status.now - worker.began);
    const longest = Math.max(0, ...ages);
    if (status.stopping) return ['slow', `Stopping, ${show.count(workers.length)} workers left`];
    if (!up.length) return ['bad', 'No worker serves'];
    if (queued) return ['slow', `${show.count(queued)} waiting for a worker`];
    if (errors) return ['slow', 'Serving, with errors'];
    if (longest >= SLOW[1]) return ['slow', `Serving, one request for ${show.age(longest)}`];
    if (workers.some(worker => worker.generation !== workers[0].generation)) {
        return ['start', 'Serving, changing over'];
    }
    if (up.every(worker => worker.state === 'busy')) return ['busy', 'Serving, every worker is busy'];
    return ['good', 'Serving'];
}

function drawHeader() {
    const [mood, text] = verdict();
    document.body.dataset.mood = mood;
    put(byId('verdict'), text);
    if (!status) return;
    const { busy, workers, queued } = samples[samples.length - 1];
    const title = `${busy}/${workers} busy${queued ? `, ${queued} waiting` : ''}`;
    document.title = `${failing ? 'No answer' : title} – Sirius`;
    const about = [
        `version ${status.version}`,
        `up ${show.seconds(status.uptime)}`,
        status.pid && `pid ${status.pid}`,
        `generation ${Math.max(0, ...status.workers.map(worker => worker.generation))}`,
        ...status.listeners,
    ];
    fillList(byId('about'), about.filter(Boolean).map(text => ['', show.text(text)]));
}

// Nothing moves while nothing is known
const rightEdge = () => paused || failing ? samples[samples.length - 1].t : now();

function drawPlots() {
    if (!samples.length) return;
    const t = rightEdge();
    const far = sample => Math.abs(sample.t - cursor);
    const sample = cursor === null ? samples[samples.length - 1]
        : samples.reduce((a, b) => far(a) < far(b) ? a : b);
    const ago = cursor === null ? '' : `, ${show.age(Math.round(t - sample.t)).replace('.0', '')} ago`;
    for (const { figure, plot, words } of plots) {
        const [value, unit, parts] = words(sample);
        plot.draw(samples, t, cursor);
        put(figure.querySelector('b'), value);
        put(figure.querySelector('span'), unit + ago);
        fillList(figure.querySelector('ul'), parts);
        figure.classList.toggle('past', cursor !== null);
    }
}

function drawWorkers() {
    const { workers, wanted } = status;
    const hidden = tiles.draw(workers, status.now);
    byId('more').hidden = !hidden;
    put(byId('more'), `and ${show.count(hidden)} more, in status.json`);
    const counts = STATES.map(state => [state, workers.filter(worker => worker.state === state).length]);
    const some = counts.filter(([, count]) => count);
    fillList(byId('states'), [
        ...some.map(([state, count]) => [state, `${show.count(count)} ${state}`]),
        ['', `${show.count(wanted)} wanted`],
    ]);
}

function drawResponses({ totals }) {
    const classes = [1, 2, 3, 4, 5].map(digit => [`c${digit}`, `${digit}xx`, totals.responses[digit] || 0]);
    const some = classes.filter(([, , count]) => count);
    const all = some.reduce((sum, [, , count]) => sum + count, 0);
    fillList(byId('share'), some.map(([id]) => [id, '']));
    some.forEach(([, , count], i) => { byId('share').children[i].style.flexGrow = String(count / all); });
    fillTable(byId('responses'), [
        ...some.map(([id, name, count]) => [name, [show.count(count), show.percent(count / all)], id]),
        ['Requests', [show.count(totals.requests), '']],
        ['Refused by the server', [show.count(totals.refused), '']],
        ['Cut before their end', [show.count(totals.aborted), '']],
        ['Sent', [show.bytes(totals.bytes), '']],
        ['Log lines lost', [show.count(totals.log_lost), ''], totals.log_lost ? 'alarm' : ''],
    ]);
}

function drawTimes({ latency, queue }) {
    const names = ['p50', 'p90', 'p99', 'p999'];
    const texts = times => names.map(name => times.count ? show.seconds(times[name]) : '–');
    drawSpread(byId('spread'), latency.buckets, [['50 %', latency.p50], ['99 %', latency.p99]]);
    fillTable(byId('times'), [
        ['', ['50 %', '90 %', '99 %', '99.9 %'], 'head'],
        ['To answer', texts(latency)],
        ['Waiting', texts(queue)],
    ]);
}

function drawClosed({ totals }) {
    const reasons = Object.entries(totals.closed).filter(([, count]) => count).sort((a, b) => b[1] - a[1]);
    fillTable(byId('closed'), [
        ...reasons.map(([why, count]) => [
            show.text(why.replace(/-/g, ' ')), [show.count(count)], 'long', count / reasons[0][1],
        ]),
        ['Accepted', [show.count(totals.accepted)], 'sum'],
        ['Moved to another worker', [show.count(totals.given)]],
    ]);
}

function take(answer) {
    if (status && status.version !== answer.version) location.reload(); // the page may have changed with it
    status = answer;
    record(answer);
    drawWorkers();
    drawResponses(answer);
    drawTimes(answer);
    drawClosed(answer);
}

async function ask() {
    const response = await fetch('status.json', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return response.json();
}

async function look() {
    clearTimeout(timer);
    if (paused || document.hidden) return;
    const start = performance.now();
    let answer = null;
    try {
        answer = await ask();
        failing = null;
    } catch (error) {
        const why = { TimeoutError: 'too slow', TypeError: 'no connection' }[error.name] || error.message;
        failing = { since: failing ? failing.since : now(), why };
    }
    const took = performance.now() - start;
    clearTimeout(timer);
    timer = setTimeout(look, Math.max(EVERY - took, took)); // a slow server is not asked all the time
    if (paused) return;
    if (answer) take(answer);
    drawHeader();
    drawPlots();
}

byId('pause').addEventListener('click', () => {
    paused = !paused;
    byId('pause').setAttribute('aria-pressed', String(paused));
    put(byId('pause'), paused ? 'Go on' : 'Pause');
    drawHeader();
    look();
});
document.addEventListener('visibilitychange', look);
window.addEventListener('resize', drawPlots);
for (const { plot } of plots) {
    plot.svg.addEventListener('pointermove', event => {
        cursor = samples.length ? plot.timeAt(event, samples, rightEdge()) : null;
        drawPlots();
    });
    plot.svg.addEventListener('pointerleave', () => {
        cursor = null;
        drawPlots();
    });
}
look();
