'use strict';

// Reads the profile that stands in the page, and shows it as the controls say.

const byId = id => document.getElementById(id);
const data = JSON.parse(byId('data').textContent);
const names = data.names.map(([text, kind]) => ({ text: show.text(text), kind }));
const whole = grow(data.nodes, data.compare ? 4 : 2);
const state = { view: 'down', time: 'all', frames: 'all', widths: 'now', rows: 'functions', focus: whole, wanted: null };

const KINDS = {
    app: 'application',
    module: 'installed modules',
    c: 'C',
    eval: 'eval, require',
    waits: 'waiting',
    path: 'request',
    other: 'other',
};
const FULL = 0.05; // a change of less has no full colour, even if it is the largest
const VERBS = { all: '', cpu: ' on CPU', wait: ' waiting' };
const CRUMBS = [[620, 3], [Infinity, 5]]; // that are shown in a window of this width

const isModule = call => names[call.name].kind === 'module';

// Made when they are first seen
const trees = { all: { down: whole }, own: {} };
function tree(view = state.view) {
    const these = trees[state.frames];
    these.down ||= without(whole, isModule);
    if (view === 'up') these.up ||= turn(these.down);
    return these[view];
}

let counts = new Counts();
let most = 0; // the largest change of a call; 0: nothing has changed

const nameOf = call => call instanceof Bundle ? `${show.count(call.below.length)} small` : call.parent ? names[call.name].text : title();
const isBefore = () => state.widths === 'before';
const weigh = call => counts.of(call.total, isBefore());

// From 0 to 1, the same for all functions of a package
function hue(text) {
    let sum = 7;
    for (const c of text.replace(/::\w+(?:\[.*\])?$/, '')) sum = (sum * 31 + c.codePointAt(0)) % 9973;
    return sum / 9973;
}

// What waits for something outside has a colour of its own; those that have called it, a line that says how much of them waits
function kindOf(name, self) {
    const { kind } = names[name];
    const waits = counts.time === 'all' && kind !== 'path' && kind !== 'other' && self && self[1] > self[0];
    return waits ? 'waits' : kind;
}

function waiting(call) {
    const [cpu, wait] = call.total;
    return counts.time === 'all' && cpu + wait ? wait / (cpu + wait) : 0;
}

function look(call) {
    const text = nameOf(call);
    const { now, was, by, sure } = counts.change(call.total, whole.total);
    const words = `${call.parent ? text : 'All'}, ${show.percent(isBefore() ? was : now)}`;
    const seen = { text, label: words };
    if (!call.parent) return { ...seen, className: 'all' };
    const kind = call instanceof Bundle ? 'other' : names[call.name].kind;
    if (kind === 'other') return { ...seen, className: kind, waiting: data.compare ? 0 : waiting(call) };
    if (!data.compare) {
        const self = call.self || (call.parent.parent ? null : call.total);
        const mostly = self && counts.of(self) * 2 >= counts.of(call.total);
        return { ...seen, className: kindOf(call.name, mostly && self), v: hue(text), waiting: waiting(call) };
    }
    seen.label += `, changed by ${show.change(by)}`;
    if (!sure) return { ...seen, className: 'same' };
    return { ...seen, className: by > 0 ? 'grew' : 'shrank', v: 0.25 + 0.75 * Math.sqrt(Math.min(1, Math.abs(by) / most)) };
}

const title = () => show.text(data.title);

// "340 samples, 34.0% (21.0% on CPU, 13.0% waiting), about 3.4 s"
function measures(total) {
    const before = isBefore();
    const all = counts.of(whole.total, before);
    const n = counts.of(total, before);
    const parts = [['cpu', 'on CPU'], ['wait', 'waiting']]
        .map(([time, words]) => [new Counts(time).of(total, before), words]).filter(([part]) => part)
        .map(([part, words]) => `${show.percent(part / all)} ${words}`);
    const split = counts.time === 'all' && parts.length ? ` (${parts.join(', ')})` : VERBS[counts.time];
    const time = data.about.hz && !before ? `, about ${show.seconds(n / data.about.hz)}` : '';
    return `${show.many(n, 'sample', 'samples')}, ${show.percent(all ? n / all : 0)}${split}${time}`;
}

function compared(total) {
    const { was, now, by, sure } = counts.change(total, whole.total);
    return `${show.percent(was)} before, ${show.percent(now)} now: ${show.change(by)} points${sure ? '' : ', within chance'}`;
}

// The places of a function where most of its samples were, wherever it was called
function places(name) {
    const rows = data.lines.filter(row => row[0] === name).map(row => [row[1], counts.of([...row.slice(4, 6), ...row.slice(8, 10)], isBefore())]);
    const all = rows.reduce((sum, [, n]) => sum + n, 0);
    return rows.filter(([, n]) => n).sort((a, b) => b[1] - a[1]).slice(0, 4).map(([place, n]) => [place, n / all]);
}

function tip(call, x, y) {
    const box = byId('tip');
    box.hidden = !call;
    if (!call) return;
    const lines = [make('p', { text: measures(call.total) })];
    const itself = call.self && counts.of(call.self, isBefore());
    if (itself && call.below.length) {
        const share = show.percent(itself / counts.of(whole.total, isBefore()));
        lines.push(make('p', { text: `${show.many(itself, 'sample', 'samples')}, ${share}, in itself` }));
    }
    if (state.focus.parent && call !== state.focus) {
        const share = show.percent(weigh(call) / weigh(state.focus));
        lines.push(make('p', { text: `${share} of ${nameOf(state.focus)}` }));
    }
    if (data.compare) lines.push(make('p', { text: compared(call.total) }));
    for (const [place, part] of places(call.name)) {
        lines.push(make('p', {}, make('code', { text: show.text(place) }), ` ${show.percent(part)} of it`));
    }
    box.replaceChildren(make('b', { text: nameOf(call) }), ...lines);
    const { width, height } = box.getBoundingClientRect();
    const [right, bottom] = [document.documentElement.clientWidth - width - 8, window.innerHeight - height - 8];
    box.style.left = `${Math.max(8, Math.min(right, x + 12))}px`;
    box.style.top = `${y + 18 > bottom ? Math.max(8, y - height - 12) : y + 18}px`;
}

const graph = new Graph(byId('graph'), { look, zoom, hover: tip });
const table = new Table(byId('table'), byId('more'), { compared: data.compare, choose });

function zoom(call) {
    state.focus = call;
    tip(null);
    drawGraph();
}

// A row of the table: marked in the graph, and where its callers are seen, those of it alone
function choose({ index, name }) {
    byId('search').value = name;
    state.wanted = new Set([index]);
    if (names[index].kind === 'module' && state.frames === 'own') {
        state.frames = 'all';
        state.focus = tree();
        document.querySelector('#frames [value=all]').checked = true;
    }
    if (state.view === 'up') state.focus = tree().below.find(call => call.name === index) || tree();
    else if (!matching(state.focus, state.wanted).some(n => n)) state.focus = tree();
    drawGraph();
    drawTable();
    byId('controls').scrollIntoView({ block: 'nearest' });
}

function search(text) {
    const words = text.trim().toLowerCase();
    const found = names.map(({ text: name, kind }, i) => (kind !== 'all' && name.toLowerCase().includes(words) ? i : -1));
    state.wanted = words ? new Set(found.filter(i => i >= 0)) : null;
    drawFound();
    drawTable();
}

function drawCrumbs() {
    const path = pathTo(state.focus);
    const [, some] = CRUMBS.find(([width]) => window.innerWidth <= width);
    const shown = path.length > some ? [path[0], null, ...path.slice(1 - some)] : path;
    byId('crumbs').replaceChildren(...shown.map(call => {
        if (!call) return make('li', { text: '…' });
        const text = call.parent ? nameOf(call) : 'All';
        const button = make('button', { type: 'button', text, title: text });
        if (call === state.focus) button.setAttribute('aria-current', 'true');
        button.addEventListener('click', () => zoom(call));
        return make('li', {}, button);
    }));
    byId('reset').hidden = !state.focus.parent;
    byId('crumbs').parentElement.hidden = !state.focus.parent;
}

function drawFound() {
    const { wanted } = state;
    const isWanted = call => call instanceof Bundle ? call.below.some(isWanted) : wanted.has(call.name);
    graph.mark(call => !wanted ? '' : isWanted(call) ? 'hit' : 'miss');
    if (!wanted) {
        byId('found').textContent = '';
        return;
    }
    const found = counts.share(matching(tree('down'), wanted), whole.total, isBefore());
    byId('found').textContent = wanted.size ? `in ${show.percent(found)} of the samples` : 'no such function';
}

function drawGraph() {
    const n = counts.of(whole.total, isBefore());
    byId('empty').hidden = n > 0;
    byId('empty').textContent = `No sample${VERBS[counts.time]}.`;
    graph.draw(state.focus, weigh);
    drawCrumbs();
    const here = measures(state.focus.total);
    byId('here').textContent = n ? here + (data.compare && state.focus.parent ? `; ${compared(state.focus.total)}` : '') : '';
    drawFound();
}

// What each colour stands for, and the share of the samples that ended there
function drawLegend() {
    if (data.compare) {
        const scale = make('i', { class: 'scale' });
        byId('legend').replaceChildren(
            ...(most ? [make('li', {}, `${show.change(-most)} points`, scale, show.change(most))] : []),
            make('li', {}, make('i', { class: 'same' }), 'no change, or within chance'),
        );
        return;
    }
    const sums = {};
    for (const call of each(tree('down'))) {
        const { kind } = names[call.name];
        const [cpu, wait] = call.self;
        const waits = counts.time === 'all' && kind !== 'path' && kind !== 'other';
        const own = kind === 'all' ? 'path' : kind;
        sums[own] = (sums[own] || 0) + (waits ? cpu : counts.of(call.self));
        if (waits && wait) sums.waits = (sums.waits || 0) + wait;
    }
    const all = counts.of(whole.total);
    byId('legend').replaceChildren(...Object.entries(KINDS).filter(([kind]) => kind in sums).map(([kind, words]) => {
        const part = sums[kind] ? ` ${show.percent(sums[kind] / all)}` : '';
        return make('li', {}, make('i', { class: kind }), words + part);
    }));
}

function drawTable() {
    const kind = state.rows;
    const rows = data[kind].filter(row => !state.wanted || state.wanted.has(row[0])).map(([index, place, ...all]) => {
        // Self and total of the profile, then of the older one
        const pick = i => [...all.slice(i, i + 2), ...all.slice(i + 4, i + 6)];
        const [self, total] = [counts.change(pick(0), whole.total), counts.change(pick(2), whole.total)];
        const of = times => `${show.count(counts.of(pick(times)))}`;
        return {
            index,
            name: names[index].text,
            place: show.text(place),
            className: data.compare ? (self.sure ? (self.by > 0 ? 'grew' : 'shrank') : 'same') : kindOf(index, pick(0)),
            title: `${of(0)} of ${show.many(counts.of(whole.total), 'sample', 'samples')} in itself, ${of(2)} with what it has called`,
            self,
            total,
        };
    });
    const heading = data.compare ? 'Largest changes' : `Hottest ${kind}`;
    byId('hottest-title').textContent = heading;
    table.draw(rows);
}

function drawAll() {
    counts = new Counts(state.time);
    most = 0;
    for (const call of each(tree('down'))) {
        if (!call.parent || names[call.name].kind === 'other') continue;
        const { by, sure } = counts.change(call.total, whole.total);
        if (sure) most = Math.max(most, Math.abs(by), FULL);
    }
    drawLegend();
    drawGraph();
    drawTable();
}

function notes() {
    const { cut, failed, left_out: leftOut } = data.about;
    const { least, samples, stacks } = data.other;
    return [
        stacks && `Calls with less than ${show.percent(least).replace('.0', '')} of the samples are shown as (other): in all,`
            + ` ${show.many(stacks, 'stack', 'stacks')} with ${show.many(samples, 'sample', 'samples')}.`,
        cut && `${show.many(cut, 'stack was', 'stacks were')} cut, as calls came and went while they were read.`,
        failed && `${show.many(failed, 'sample', 'samples')} could not be taken.`,
        leftOut && `${show.many(leftOut, 'sample is', 'samples are')} counted as (other), as there were too many different stacks.`,
        ...['functions', 'lines'].filter(kind => data.counts[kind] > data[kind].length)
            .map(kind => `The table has ${show.count(data[kind].length)} of ${show.count(data.counts[kind])} ${kind}.`),
    ].filter(Boolean).join(' ');
}

function about() {
    const { hz, seconds } = data.about;
    const [cpu, wait, oldCpu = 0, oldWait = 0] = whole.total;
    return [
        show.many(cpu + wait, 'sample', 'samples'),
        hz && `${hz} per second and process`,
        seconds && `in ${show.seconds(seconds)}`,
        data.compare && `compared with ${show.many(oldCpu + oldWait, 'sample', 'samples')}`,
    ].filter(Boolean).join(', ');
}

for (const name of ['view', 'time', 'frames', 'widths', 'rows']) {
    byId(name).addEventListener('change', event => {
        state[name] = event.target.value;
        if (name === 'rows') return drawTable();
        if (name === 'view' || name === 'frames') {
            const { focus } = state;
            state.focus = tree();
            const same = state.view === 'up' && focus.parent && state.focus.below.find(call => call.name === focus.name);
            if (same) state.focus = same;
        }
        return drawAll();
    });
}
byId('search').addEventListener('input', event => search(event.target.value));
byId('controls').addEventListener('submit', event => event.preventDefault());
byId('reset').addEventListener('click', () => zoom(tree()));
document.addEventListener('keydown', event => {
    const typing = event.target.matches('input[type=search]');
    if (event.key === '/' && !typing) {
        event.preventDefault();
        byId('search').focus();
    } else if (event.key === 'Escape') {
        tip(null);
        if (state.wanted) {
            byId('search').value = '';
            search('');
        } else if (!typing && state.focus.parent) {
            zoom(state.focus.parent);
        }
    }
});

document.title = `${title()} – Sirius`;
byId('title').textContent = title();
byId('about').textContent = about();
byId('notes').textContent = notes();
byId('widths').hidden = !data.compare;
byId('rows').hidden = !data.lines.length;
byId('frames').hidden = !names.some(({ kind }) => kind === 'module');
let drawnWidth = 0;
new ResizeObserver(() => {
    if (byId('graph').clientWidth === drawnWidth) return;
    drawnWidth = byId('graph').clientWidth;
    drawGraph();
}).observe(byId('graph'));
drawAll();
