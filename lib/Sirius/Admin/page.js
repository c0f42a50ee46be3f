'use strict';

// Fetches status.json and shows it.

const EVERY = 500; // ms between two looks
const PATIENCE = 3000; // ms that an answer may take
const RECENT = 10; // seconds over which present rates and percentiles are taken
const SAID = 12; // lines of what a failed reload wrote

const REASONS = {
    client: 'by the client',
    'after-response': 'after the last response',
    'keepalive-timeout': 'keep-alive timeout',
    'header-timeout': 'header timeout',
    'body-timeout': 'body timeout',
    'write-timeout': 'write timeout',
    refused: 'request refused',
    room: 'idle, to make room',
    stop: 'server stopping',
    application: 'taken over by the application',
    'proxy-protocol': 'invalid PROXY header',
    'tls-handshake': 'TLS handshake failed',
    'hold-buffer': 'held, and too slow',
    'max-temp-file-size': 'slowest, to make room for files',
    error: 'error',
};
const CAUSES = {
    stop: 'stop or reload',
    'fewer-workers': 'fewer workers wanted',
    'max-requests': 'recycled: requests',
    'max-rss': 'recycled: memory',
    'max-lifetime': 'recycled: age',
    harakiri: 'requested by the application',
    'request-timeout': 'request timeout',
    'load-timeout': 'loading or a hook took too long',
    exit: 'exit in the application',
    crash: 'crash',
    'out-of-memory': 'out of memory',
    killed: 'killed by a signal',
    'graceful-timeout': 'killed after the graceful timeout',
};
const LIMITS = {
    header: 'request header',
    body: 'request body',
    write: 'response not read',
    queue: 'waiting for a worker',
    request: 'request in the application',
    stream: 'pause within a response',
};
const DEATHS = ['exit', 'crash', 'out-of-memory', 'killed', 'graceful-timeout', 'load-timeout', 'request-timeout'];

const byId = id => document.getElementById(id);
const now = () => performance.now() / 1000;

const samples = []; // of the last SPAN seconds, one for each look
let looks = []; // the whole answers of the last RECENT seconds
let status = null; // the last one
let failing = null; // since when there is no answer, and why
let cursor = null; // the time that the pointer is at
let asked = -Infinity; // when the past was asked for
let bounds = [0, Infinity]; // of the times that the server can tell
let paused = false;
let timer;

// Items are pairs of a class and a text
function fillList(list, items) {
    while (list.children.length > items.length) list.lastChild.remove();
    items.forEach(([className, text], i) => {
        const item = list.children[i] || list.appendChild(document.createElement('li'));
        item.className = className;
        put(item, text);
    });
}

// Rows have a head, texts, a class, and the length of a bar from 0 to 1
function fillTable(table, rows) {
    while (table.rows.length > rows.length) table.deleteRow(-1);
    rows.forEach(([head, texts, className = '', bar = 0], i) => {
        const row = table.rows[i] || table.insertRow();
        row.className = className;
        row.style.setProperty('--bar', `${(bar * 100).toFixed(1)}%`);
        while (row.cells.length > texts.length + 1) row.deleteCell(-1);
        [head, ...texts].forEach((text, column) => {
            const kind = column ? 'td' : 'th';
            const cell = row.cells[column] || row.appendChild(document.createElement(kind));
            if (!column) cell.scope = 'row';
            put(cell, text);
        });
    });
}

// A sample in words: the figure, its name, and the others with their colours
const words = {
    requests: s => s.rate === null ? NOTHING : [
        show.short(s.rate), 'per second',
        [['errors', s.errors ? `${show.short(s.errors)} errors (5xx) per second` : 'no errors (5xx)']],
    ],
    latency: s => s.p50 === null ? ['–', 'no requests', []] : [
        show.bounded(s.p50, bounds), 'median',
        [
            ['p90', `90% within ${show.bounded(s.p90, bounds)}`.replace('within <', 'in <')],
            ['p99', `99% within ${show.bounded(s.p99, bounds)}`.replace('within <', 'in <')],
        ],
    ],
    load: s => [
        show.count(s.busy), `of ${show.count(s.workers)}`,
        [['queued', s.queued ? `${show.many(s.queued, 'request', 'requests')} waiting` : 'no request waiting']],
    ],
    connections: s => [
        show.short(s.open), 'open',
        [['active', `${show.short(s.active)} active`], ['open', `${show.short(s.open - s.active)} idle`]],
    ],
};
const NOTHING = ['–', 'no data', []];

const plots = Object.entries({
    requests: { series: ['rate', 'errors'], area: ['rate', 'errors'], least: 10, mark: show.short },
    latency: { series: ['p99', 'p90', 'p50'], scale: 'log', least: 0.001, mark: show.secondsShort },
    load: { series: ['workers', 'busy', 'queued'], area: ['busy', 'queued'], least: 2, mark: show.short },
    connections: { series: ['open', 'active'], area: ['open', 'active'], least: 10, mark: show.short },
}).map(([id, options]) => ({ figure: byId(id), plot: new Plot(byId(id), options), words: words[id] }));

const paths = new PathTable(byId('calls'));
const stack = new StackDialog(byId('stack'));
const tiles = new Tiles(byId('workers'), byId('tile'), worker => stack.open(worker));
const profile = new ProfileButton({ button: byId('take'), text: byId('taken'), link: byId('graph') });

const allBuckets = ({ buckets, count }) => [...buckets, [Infinity, count]];

// The first answers have nothing to compare with: their rates are the last ones in the history of the server
function goOn(sample, before) {
    if (!sample.first || sample.started !== before.started || sample.t - before.t > GAP) return;
    for (const name of ['rate', 'p50', 'p90', 'p99']) sample[name] = before[name];
}

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
        first: !before,
        started: answer.started,
        rate: rate(counts => counts.requests + (counts.files || 0)),
        errors: rate(counts => counts.responses[5] || 0) || null, // none: nothing red at the ground
        p50: quantile(recent, 0.5),
        p90: quantile(recent, 0.9),
        p99: quantile(recent, 0.99),
        busy: workers.filter(worker => worker.began > 0).length,
        workers: workers.length,
        queued: connections.waiting || null,
        open: connections.open,
        active: Math.max(0, connections.open - connections.idle),
    });
    if (samples.length > 1) goOn(...samples.slice(-2).reverse());
    while (samples[0].t < t - SPAN - GAP) samples.shift();
    looks.push({ t, answer });
}

// Fills in what the server has recorded before this page was opened, or while it was hidden
async function remember(answer, t) {
    asked = t;
    try {
        const { names, samples: rows } = await ask('history.json');
        const past = rows.map(row => Object.fromEntries(names.map((name, i) => [name, row[i]])));
        const taken = samples.map(sample => sample.t);
        for (const row of past) {
            const at = t - (answer.now - row.at);
            if (row.started !== answer.started || taken.some(other => Math.abs(other - at) < 2.5)) continue;
            samples.push({
                t: at,
                started: row.started,
                rate: row.rate,
                errors: row.error_rate || null,
                p50: row.p50,
                p90: row.p90,
                p99: row.p99,
                busy: row.busy,
                workers: row.workers,
                queued: row.queued || null,
                open: row.open,
                active: Math.max(0, row.active),
            });
        }
        samples.sort((a, b) => a.t - b.t);
        samples.forEach((sample, i) => { if (i) goOn(sample, samples[i - 1]); });
        drawHeader();
        drawPlots();
    } catch {
        // A server without a history: it begins now
    }
}

// The line that sums everything up: the worst condition that holds
function verdict() {
    if (paused) return ['quiet', 'Paused'];
    if (failing) return ['bad', `No answer for ${show.age(now() - failing.since)}: ${failing.why}`];
    if (!status) return ['quiet', 'Connecting'];
    return [status.verdict.mood, show.text(status.verdict.text)];
}

function drawHeader() {
    const [mood, text] = verdict();
    document.body.dataset.mood = mood;
    put(byId('verdict'), text);
    put(byId('spoken'), text.replace(/[:,]?[^:,]*\d.*/, '') || text.replace(/[\d,.]+ /, '')); // not each new figure
    if (!status) return;
    const { busy, workers, queued } = samples[samples.length - 1];
    const { app, host, reload = {} } = status;
    const where = [app, host && `on ${host}`].filter(Boolean).map(show.text).join(' ');
    const load = `${busy}/${workers} busy${queued ? `, ${queued} waiting` : ''}`;
    const title = [where, failing ? 'No answer' : load].filter(Boolean).join(': ');
    document.title = `${title} – Sirius`;
    put(byId('app'), show.text(app || 'Sirius'));
    put(byId('host'), host ? show.text(`on ${host}`) : '');
    const about = [
        `Sirius ${status.version}`,
        `up ${show.seconds(status.uptime)}`,
        status.pid && `PID ${status.pid}`,
        `generation ${Math.max(0, ...status.workers.map(worker => worker.generation))}`,
        reload.last_ok && `reloaded ${show.since(status.time - reload.last_at)} ago,`
            + ` in ${show.seconds(reload.last_seconds)}`,
        ...expiring(status),
        ...status.listeners,
    ];
    fillList(byId('about'), about.filter(Boolean).map(text => ['', show.text(text)]));
}

// Of the certificate that expires first
function expiring({ reload = {}, time }) {
    const [first] = [...reload.certificates || []].sort((a, b) => a.expires - b.expires);
    if (!first) return [];
    const days = Math.floor((first.expires - time) / 86400);
    return [days < 0 ? `certificate of ${first.name} has expired`
        : `certificate of ${first.name} expires in ${days} ${days === 1 ? 'day' : 'days'}`];
}

// A reload that is under way or has failed: there is something to know, or to do
function drawReload({ reload = {}, now: present, time, workers }) {
    const failed = reload.last_at > 0 && !reload.last_ok;
    byId('reload').hidden = !reload.loading && !failed;
    if (byId('reload').hidden) return;
    const serving = Math.max(0, ...workers.map(worker => worker.generation).filter(n => n !== reload.loading));
    const loading = `Generation ${reload.loading} has been loading for ${show.since(present - reload.loading_since)};`
        + ` generation ${serving} keeps serving.`;
    const result = failed && `${reload.last_text} It was ${show.since(time - reload.last_at)} ago,`
        + ` after ${show.seconds(reload.last_seconds)}.`.replace(' after 0 µs', ' at once');
    const said = failed && !reload.loading ? (reload.last_said || '').replace(/\t/g, '    ').trimEnd().split('\n') : [];
    const lines = said.length > SAID ? [...said.slice(0, SAID), '…'] : said;
    byId('reload').className = reload.loading ? 'loading' : 'failed';
    put(byId('reload-title'), reload.loading ? 'Reloading' : 'The last reload failed');
    put(byId('reload-text'), show.text(reload.loading ? loading : sentence(result)));
    put(byId('reload-said'), lines.map(show.text).join('\n'));
    byId('reload-said').hidden = !lines.join('');
    put(byId('reload-hint'), reload.loading
        ? 'See its progress with: sirius ctl status'
        : 'The old code keeps serving. Fix the cause, then run: sirius ctl reload --wait');
}

// "reload failed: status 2; generation 1 keeps serving It was ..." reads better with a full stop in between
const sentence = text => text.replace(/([^.]) It was /, '$1. It was ').replace(/^./, c => c.toUpperCase());

// Nothing moves as long as nothing is known
const rightEdge = () => paused || failing ? samples[samples.length - 1].t : now();

function drawPlots() {
    if (!samples.length) return;
    const t = rightEdge();
    const sample = cursor === null ? samples[samples.length - 1] : sampleAt(cursor);
    const ago = cursor === null ? ''
        : `, ${show.age(Math.round(t - (sample ? sample.t : cursor))).replace('.0', '')} ago`;
    for (const { figure, plot, words } of plots) {
        const [value, unit, parts] = sample ? words(sample) : NOTHING;
        plot.draw(samples, t, sample ? cursor : null);
        put(figure.querySelector('b'), value);
        put(figure.querySelector('span'), unit + ago);
        fillList(figure.querySelector('ul'), parts);
        figure.classList.toggle('past', cursor !== null);
    }
}

// The nearest sample, if the lines have any at that time
function sampleAt(t) {
    const far = sample => Math.abs(sample.t - t);
    const nearest = samples.reduce((a, b) => far(a) < far(b) ? a : b);
    return far(nearest) <= GAP / 2 ? nearest : null;
}

function drawWorkers() {
    const { workers, wanted } = status;
    const hidden = tiles.draw(workers, status.now);
    byId('more').hidden = !hidden;
    put(byId('more'), `${show.count(hidden)} more are in status.json.`);
    const counts = STATES.map(state => [state, workers.filter(worker => worker.state === state).length]);
    const some = counts.filter(([, count]) => count);
    fillList(byId('states'), [
        ...some.map(([state, count]) => [state, `${show.count(count)} ${state}`]),
        ['', `${show.count(wanted)} wanted`],
    ]);
    drawFold();
}

// On a phone idle workers are hidden; elsewhere the button is hidden
function drawFold() {
    const idle = [...tiles.all.values()].filter(tile => tile.idle).length;
    const folded = byId('workers').classList.contains('folded');
    byId('fold').hidden = !idle;
    byId('fold').setAttribute('aria-expanded', String(!folded));
    put(byId('fold'), folded ? `Show ${show.many(idle, 'idle worker', 'idle workers')}` : 'Hide idle workers');
}

function drawResponses({ totals }) {
    const classes = [1, 2, 3, 4, 5].map(digit => [`c${digit}`, `${digit}xx`, totals.responses[digit] || 0]);
    const some = classes.filter(([, , count]) => count);
    const all = some.reduce((sum, [, , count]) => sum + count, 0);
    fillList(byId('share'), some.map(([id]) => [id, '']));
    some.forEach(([, , count], i) => { byId('share').children[i].style.flexGrow = String(count / all); });
    fillTable(byId('responses'), [
        ...some.map(([id, name, count]) => [name, [show.count(count), show.percent(count / all)], id]),
        ['Requests', [show.count(totals.requests + (totals.files || 0)), '']],
        ['Refused by the server', [show.count(totals.refused), '']],
        ['Aborted before their end', [show.count(totals.aborted), '']],
        ...totals.slow ? [['Slower than --slow-log', [show.count(totals.slow), '']]] : [],
        ['Bytes sent', [show.bytes(totals.bytes), '']],
        ['Access log lines lost', [show.count(totals.log_lost), ''], totals.log_lost ? 'alarm' : ''],
    ]);
}

function drawTimes({ latency, queue }) {
    const names = ['p50', 'p90', 'p99', 'p999'];
    const texts = times => names.map(name => times.count ? show.bounded(times[name], bounds) : '–');
    drawSpread(byId('spread'), latency.buckets, [['50%', latency.p50], ['99%', latency.p99]]);
    fillTable(byId('times'), [
        ['', ['50%', '90%', '99%', '99.9%'], 'head'],
        ['Response time', texts(latency)],
        ['Wait for a worker', texts(queue)],
    ]);
}

// Counts with bars, the largest first; those that are 0 are left out
function drawCounts(id, counts, names, alarms = []) {
    const some = Object.entries(counts || {}).filter(([, count]) => count).sort((a, b) => b[1] - a[1]);
    fillTable(byId(id), some.length ? some.map(([name, count]) => [
        names[name] || show.text(name),
        [show.count(count)],
        alarms.includes(name) ? 'long alarming' : 'long',
        count / some[0][1],
    ]) : [['none', []]]);
}

function drawConnections({ totals, connections, held }) {
    const sum = of => Object.values(of || {}).reduce((all, count) => all + count, 0);
    const floods = sum(totals.floods);
    fillTable(byId('accepted'), [
        ['Accepted', [show.count(totals.accepted)]],
        ...totals.given ? [['Moved to another edge', [show.count(totals.given)]]] : [],
        ['Open now', [show.count(connections.open)]],
        ...totals.http2 ? [
            ['HTTP/2', [show.count(totals.http2)]],
            ['HTTP/2, open now', [show.count(connections.http2)]],
            ['Streams now', [show.count(connections.streams)]],
        ] : [],
        ...sum(held) || totals.published ? [
            ['Held now', [show.count(sum(held))]],
            ['Published', [show.count(totals.published)]],
            ['Delivered', [show.count(totals.delivered)]],
        ] : [],
        ...totals.hold_slow ? [['Held, but too slow', [show.count(totals.hold_slow)], 'alarm']] : [],
        ...floods ? [['Floods over HTTP/2', [show.count(floods)], 'alarm']] : [],
    ]);
    drawCounts('closed', totals.closed, REASONS);
}

// The share of a processor that the process has used lately; null if it has just begun
function cpuOf(edge, { now: present }) {
    for (const { answer } of looks) {
        const then = (answer.edges || []).find(other => other.pid === edge.pid);
        const seconds = present - answer.now;
        if (then) return seconds > 0.9 ? Math.max(0, edge.cpu - then.cpu) / seconds : null;
    }
    return null;
}

function drawEdges(answer) {
    const { edges = [], totals, now: present } = answer;
    const used = totals.edge_exits !== undefined;
    byId('edges').hidden = !used;
    byId('edge-exits-title').hidden = byId('edge-exits').hidden = !used;
    if (!used) return;
    put(byId('edges-title'), edges.length > 1 ? 'Edges' : 'Edge');
    put(byId('edges').querySelector('p'), edges.length > 1 ? 'own the connections' : 'owns the connections');
    fillTable(byId('edge'), [
        ['PID', ['open', 'idle', 'in hand', 'waiting', 'longest wait', 'accepted', 'sent', 'CPU', 'memory', 'up'], 'head'],
        ...edges.map(edge => {
            const { connections: open, idle, waiting } = edge;
            const cpu = cpuOf(edge, answer);
            return [
                edge.state === 'draining' ? `${edge.pid}, draining` : String(edge.pid),
                [
                    ...[open, idle, Math.max(0, open - idle - waiting), waiting].map(show.count),
                    edge.waiting_since ? show.age(present - edge.waiting_since) : '–',
                    show.count(edge.accepted),
                    show.bytes(edge.bytes),
                    cpu === null ? '–' : show.percent(cpu),
                    edge.rss ? show.bytes(edge.rss) : '–',
                    show.since(present - edge.started),
                ],
                waiting ? 'waits' : '',
            ];
        }),
        ...edges.length ? [] : [['no edge is running; another one is being started', [], 'alarm']],
    ]);
    drawCounts('edge-exits', totals.edge_exits, CAUSES, DEATHS);
}

function drawLanes({ lanes = [], now: present }) {
    byId('lanes').hidden = !lanes.length;
    fillTable(byId('lane'), [
        ['Requests', ['places', 'running', 'waiting', 'longest wait', 'all so far', 'mean wait', 'refused', 'timed out'], 'head'],
        ...lanes.map(lane => [
            show.text(lane.name),
            [
                ...[lane.limit, lane.running, lane.waiting].map(show.count),
                lane.waiting_since ? show.age(present - lane.waiting_since) : '–',
                show.count(lane.requests),
                lane.requests ? show.seconds(lane.waited / lane.requests) : '–',
                ...[lane.refused, lane.timed_out].map(show.count),
            ],
            lane.waiting ? 'waits' : '',
        ]),
    ]);
}

function drawFiles({ totals }) {
    const { files, files_bytes: bytes = 0, files_unchanged: unchanged = 0, files_missing: missing = 0 } = totals;
    byId('files').hidden = !files;
    fillTable(byId('file'), [
        ['', ['requests', 'of all', 'sent', 'not modified (304)', 'not found (404)'], 'head'],
        ['--static', [
            show.count(files), show.percent(files / (files + totals.requests)), show.bytes(bytes),
            show.count(unchanged), show.count(missing),
        ]],
    ]);
}

function take(answer) {
    if (status && status.version !== answer.version) location.reload(); // the page may have changed with it
    status = answer;
    const { buckets } = answer.latency;
    if (buckets.length) bounds = [buckets[0][0], buckets[buckets.length - 1][0]];
    const t = now();
    const last = samples[samples.length - 1];
    if ((!last || last.t < t - GAP / 2) && asked < t - GAP / 2) remember(answer, t);
    record(answer);
    drawReload(answer);
    drawWorkers();
    drawResponses(answer);
    drawTimes(answer);
    drawConnections(answer);
    drawCounts('exits', answer.totals.exits, CAUSES, DEATHS);
    drawEdges(answer);
    paths.draw(answer, looks[0].answer);
    drawExceptions(byId('exceptions'), answer);
    drawLanes(answer);
    drawFiles(answer);
    profile.draw(answer.profile || {});
    const { keepalive, ...limits } = answer.totals.limits || {}; // the end of an idle connection is none
    drawCounts('limits', limits, LIMITS);
}

async function ask(file) {
    const response = await fetch(file, { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return response.json();
}

async function look() {
    clearTimeout(timer);
    if (paused || document.hidden) return;
    const start = performance.now();
    let answer = null;
    try {
        answer = await ask('status.json');
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
    put(byId('pause'), paused ? 'Resume' : 'Pause');
    drawHeader();
    look();
});
byId('fold').addEventListener('click', () => {
    byId('workers').classList.toggle('folded');
    drawFold();
});
document.addEventListener('visibilitychange', look);

// Also when a scroll bar comes, and while nothing else is drawn
const resized = new ResizeObserver(() => {
    plots.forEach(({ plot }) => plot.measure());
    drawPlots();
    if (status) drawTimes(status);
});
resized.observe(byId('spread'));
for (const { plot } of plots) {
    resized.observe(plot.svg);
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
