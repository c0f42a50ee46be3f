'use strict';

// A tile for each worker. Everything is shown as text, never as HTML: clients choose URLs.

const TILES = 512; // more are not shown
const DENSE = 32; // more workers than that: small tiles
const WIDTH = [268, 176]; // of a tile, at least; of a small one
const PULSES = 60; // looks that a tile remembers
const SLOW = [1, 10]; // seconds that make a request long, and very long
const STATES = ['busy', 'idle', 'starting', 'draining'];
const PARTS = ['slot', 'state', 'generation', 'age', 'line', 'client', 'mark', 'foot'];

function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

// All of it, and what it shares with no other process
function memory(worker) {
    const own = worker.private ? `, ${show.count(worker.private / 2 ** 20)} own` : '';
    return `${show.count(worker.rss / 2 ** 20)} MiB${own}`;
}

class Tile {
    constructor(template) {
        this.element = template.content.firstElementChild.cloneNode(true);
        this.parts = Object.fromEntries(PARTS.map(name => [name, this.element.querySelector(`.${name}`)]));
        this.pulse = this.element.querySelector('.pulse path');
        this.ask = this.element.querySelector('.ask');
        this.counts = [];
    }

    // `several`: there are workers of other generations
    draw(worker, now, several) {
        const busy = worker.began > 0;
        const age = now - (busy ? worker.began : worker.since);
        const pace = !busy || age < SLOW[0] ? '' : age < SLOW[1] ? 'slow' : 'stuck';
        const state = STATES.includes(worker.state) ? worker.state : '';
        const foot = [
            `PID ${worker.pid}`,
            `${show.short(worker.requests)} req`,
            worker.rss && memory(worker),
        ];
        const last = !busy && worker.last_line; // it has served, and waits for more
        const ended = last && `last: ${worker.last_status || 'no response'}, ${show.age(age)} ago`;
        const texts = {
            slot: String(worker.slot),
            state: worker.state,
            generation: several ? `gen ${worker.generation}` : '',
            age: last ? '' : show.age(age),
            line: show.text((busy ? worker.line : worker.last_line) || ''),
            client: last ? ended : busy ? show.text(worker.client || '') : '',
            mark: show.text(worker.mark || ''),
            foot: foot.filter(Boolean).join(' · '),
        };
        for (const name of PARTS) put(this.parts[name], texts[name]);
        this.idle = state === 'idle' && !busy;
        this.worker = worker;
        this.ask.hidden = !busy;
        this.ask.setAttribute('aria-label', `stack of worker ${worker.slot}`);
        this.element.className = ['tile', state, busy && 'at-work', last && 'rests', this.idle && 'folds', pace].filter(Boolean).join(' ');
        this.element.title = [texts.line, texts.client, worker.id && `id ${show.text(worker.id)}`, texts.mark, texts.foot].filter(Boolean).join('\n');
    }

    // Requests since the last answer; a dot if none has ended but one is running
    count(worker) {
        const done = this.requests === undefined ? 0 : Math.max(0, worker.requests - this.requests);
        this.requests = worker.requests;
        this.counts.push(done || (worker.began > 0 ? 0.1 : 0));
        if (this.counts.length > PULSES) this.counts.shift();
    }

    // Small columns; `most` is the value of the highest
    drawPulse(most) {
        const step = 120 / PULSES;
        const first = PULSES - this.counts.length + 0.5;
        const columns = this.counts.map((count, i) => {
            const tall = Math.max(1, 15 * count / most).toFixed(1);
            return count ? `M${(first + i) * step} 16v-${tall}` : '';
        });
        this.pulse.setAttribute('d', columns.join(''));
    }
}

// All workers, in the order of their places
class Tiles {
    // `asked` is called with the worker whose tile was clicked while it has a request
    constructor(list, template, asked) {
        this.asked = asked;
        Object.assign(this, { list, template, all: new Map() });
        list.addEventListener('click', event => this.clicked(event.target.closest('.tile')));
        new ResizeObserver(() => this.arrange()).observe(list);
    }

    clicked(element) {
        const tile = [...this.all.values()].find(other => other.element === element);
        if (tile && !tile.ask.hidden && !getSelection().toString()) this.asked(tile.worker);
    }

    // As many columns as leave the last row as full as possible
    arrange() {
        const count = this.all.size || 1;
        const dense = count > DENSE;
        const fit = Math.max(1, Math.floor((this.list.clientWidth + 8) / (WIDTH[dense ? 1 : 0] + 8)));
        this.list.classList.toggle('dense', dense);
        this.list.style.setProperty('--columns', String(Math.ceil(count / Math.ceil(count / fit))));
    }

    draw(workers, now) {
        const several = workers.some(worker => worker.generation !== workers[0].generation);
        const shown = workers.slice(0, TILES).sort((a, b) => a.slot - b.slot);
        const there = new Set(shown.map(worker => worker.slot));
        for (const [slot, tile] of this.all) {
            if (there.has(slot)) continue;
            tile.element.remove();
            this.all.delete(slot);
        }
        shown.forEach((worker, i) => {
            if (!this.all.has(worker.slot)) {
                const tile = new Tile(this.template);
                this.list.insertBefore(tile.element, this.list.children[i] || null);
                this.all.set(worker.slot, tile);
            }
            const tile = this.all.get(worker.slot);
            tile.draw(worker, now, several);
            tile.count(worker);
        });
        const tiles = [...this.all.values()];
        const most = Math.max(4, ...tiles.flatMap(tile => tile.counts));
        tiles.forEach(tile => tile.drawPulse(most));
        this.arrange();
        return workers.length - shown.length;
    }
}
