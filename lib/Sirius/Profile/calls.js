'use strict';

// The calls of a profile as a tree that can be read from both ends, and what is said of them. Nothing here knows the page.

const SURE = 3; // standard errors that a difference needs to be more than chance; see Sirius::Profile::Compare

// Characters that are invisible, or reverse the direction of text
const UNSEEN = /[\0-\x1f\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs}/gu;

const show = {
    count: n => Math.round(n).toLocaleString('en-US'),

    many: (n, one, more) => `${show.count(n)} ${n === 1 ? one : more}`,

    percent(part) {
        if (part > 0 && part < 0.0005) return '< 0.1%';
        return `${(part * 100).toFixed(1)}%`;
    },

    // Percentage points
    change: part => `${part < 0 ? '−' : '+'}${Math.abs(part * 100).toFixed(1)}`,

    seconds: s => `${s.toFixed(s < 10 ? 2 : s < 100 ? 1 : 0)} s`,

    text: s => s.replace(UNSEEN, c => `\\u{${c.codePointAt(0).toString(16)}}`),
};

// Counts are samples on CPU and waiting, then those of the older profile
class Counts {
    constructor(time = 'all') {
        this.time = time;
    }

    of([cpu, wait, oldCpu = 0, oldWait = 0], before = false) {
        const [a, b] = before ? [oldCpu, oldWait] : [cpu, wait];
        return (this.time === 'wait' ? 0 : a) + (this.time === 'cpu' ? 0 : b);
    }

    share(counts, all, before = false) {
        const whole = this.of(all, before);
        return whole ? this.of(counts, before) / whole : 0;
    }

    // How much its share has grown, and whether that is more than chance
    change(counts, all) {
        const [of, ofOld] = [this.of(all), this.of(all, true)];
        const [now, was] = [this.share(counts, all), this.share(counts, all, true)];
        const both = of + ofOld ? (this.of(counts) + this.of(counts, true)) / (of + ofOld) : 0;
        const error = of && ofOld ? Math.sqrt(both * (1 - both) * (1 / of + 1 / ofOld)) : Infinity;
        return { now, was, by: now - was, sure: Math.abs(now - was) > SURE * error };
    }
}

function add(to, counts) {
    counts.forEach((n, i) => { to[i] += n; });
}

// A function in a place of the tree; `name` is an index into all names
class Call {
    constructor(name, parent, self) {
        Object.assign(this, { name, parent, self: [...self], total: [...self], below: [], depth: parent ? parent.depth + 1 : 0 });
        if (parent) parent.below.push(this);
    }
}

// Rows are flat: name, depth, counts. The first is all of the profile
function grow(rows, width) {
    const all = [];
    const path = [];
    for (let i = 0; i < rows.length; i += 2 + width) {
        const [name, depth] = [rows[i], rows[i + 1]];
        path.length = depth;
        path[depth] = new Call(name, depth ? path[depth - 1] : null, rows.slice(i + 2, i + 2 + width));
        all.push(path[depth]);
    }
    for (let i = all.length - 1; i > 0; i--) add(all[i].parent.total, all[i].total);
    return all[0];
}

function* each(root) {
    const pending = [root];
    while (pending.length) {
        const call = pending.pop();
        yield call;
        pending.push(...call.below);
    }
}

// The same without the calls that are not wanted: what they have called, and their own samples, belong to their callers
function without(root, unwanted) {
    const copy = new Call(root.name, null, root.self);
    const pending = [[root, copy]];
    const all = [copy];
    while (pending.length) {
        const [from, to] = pending.pop();
        for (const call of from.below) {
            let place = unwanted(call) ? to : to.below.find(other => other.name === call.name);
            if (place) add(place.self, call.self);
            else all.push(place = new Call(call.name, to, call.self));
            pending.push([call, place]);
        }
    }
    for (const call of all) call.total = [...call.self];
    for (const call of all.sort((a, b) => b.depth - a.depth)) if (call.parent) add(call.parent.total, call.total);
    return copy;
}

// The same from the other end: below a function are those that have called it. Pairs are calls that ran, and those of their callers that are
// here; they are grouped when somebody asks, since all of them would be many
class Caller {
    constructor(name, parent, pairs) {
        Object.assign(this, { name, parent, pairs, total: pairs[0][0].self.map(() => 0) });
        for (const [ran] of pairs) add(this.total, ran.self);
    }

    get below() {
        if (!this.callers) {
            const outward = this.parent ? this.pairs.map(([ran, at]) => [ran, at.parent]) : this.pairs;
            const groups = group(outward.filter(([, at]) => at.parent));
            this.callers = [...groups].map(([name, pairs]) => new Caller(name, this, pairs));
        }
        return this.callers;
    }
}

// Calls that are too small to be seen, as one
class Bundle {
    constructor(parent, calls) {
        Object.assign(this, { parent, below: calls, total: calls[0].total.map(() => 0) });
        for (const call of calls) add(this.total, call.total);
    }
}

function group(pairs) {
    const groups = new Map();
    for (const pair of pairs) {
        const name = pair[1].name;
        if (groups.has(name)) groups.get(name).push(pair);
        else groups.set(name, [pair]);
    }
    return groups;
}

function turn(root) {
    const pairs = [...each(root)].filter(call => call.self.some(n => n)).map(call => [call, call]);
    return new Caller(root.name, null, pairs.length ? pairs : [[root, root]]);
}

// The counts of all calls with one of these names, each sample once
function matching(root, names) {
    const found = root.total.map(() => 0);
    const pending = [root];
    while (pending.length) {
        const call = pending.pop();
        if (names.has(call.name)) add(found, call.total);
        else pending.push(...call.below);
    }
    return found;
}

function pathTo(call) {
    const path = [];
    for (let at = call; at; at = at.parent) path.unshift(at);
    return path;
}
