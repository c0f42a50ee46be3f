'use strict';

// Draws calls as rows of boxes, each as wide as its share and below its caller, and lets keys and pointers move in them.
// Everything is shown as text, never as HTML: clients choose paths, and applications the names of functions.

const THIN = 1; // pixels: what is narrower is not drawn alone
const WORDS = 26; // pixels that a box needs for a name
const LETTER = 7.3; // pixels of a letter
const STEPS = { ArrowUp: 'parent', ArrowDown: 'child', ArrowLeft: 'left', ArrowRight: 'right' };

function make(name, { text, ...attributes } = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    element.append(...children);
    return element;
}

// The last parts of a name say most: Shop::Storage::Cache::fetch, Cache::fetch, fetch; main::__ANON__[app.psgi:12], [app.psgi:12]
function fitting(name, width) {
    let text = name;
    while (text.length * LETTER > width && /^[^/\s]*?::./.test(text)) text = text.replace(/^.*?::/, '');
    return text.length * LETTER > width ? text.replace(/^__ANON__(?=\[)/, '') : text;
}

// Calls with their widths, in groups that are wide enough to be seen; no width is lost but less than that of one
function bundles(calls) {
    const all = [];
    let [some, wide] = [[], 0];
    for (const [call, width] of calls) {
        if (!width) break;
        some.push(call);
        wide += width;
        if (wide < WORDS) continue;
        all.push([some, wide]);
        [some, wide] = [[], 0];
    }
    if (wide >= THIN) all.push([some, wide]);
    return all;
}

class Graph {
    // `look` gives what is to be seen of a call: { className, v, waiting, text, label }
    constructor(element, { look, zoom, hover }) {
        Object.assign(this, { element, look, zoom, hover, boxes: [], byElement: new Map() });
        element.addEventListener('click', event => {
            const box = this.byElement.get(event.target);
            if (box) this.choose(box.call);
        });
        element.addEventListener('pointermove', event => {
            const box = event.pointerType === 'touch' ? null : this.byElement.get(event.target);
            hover(box ? box.call : null, event.clientX, event.clientY);
        });
        element.addEventListener('pointerleave', () => hover(null));
        element.addEventListener('focusin', event => {
            const box = this.byElement.get(event.target);
            if (!box) return;
            this.enter(box);
            if (!event.target.matches(':focus-visible')) return;
            const { left, bottom } = event.target.getBoundingClientRect();
            hover(box.call, Math.max(0, left), bottom);
        });
        element.addEventListener('focusout', () => hover(null));
        element.addEventListener('keydown', event => this.key(event));
    }

    // Zooms in, or out again if there is nothing more to see of it
    choose(call) {
        this.zoom(call === this.top && call.parent ? call.parent : call);
    }

    // `weigh` gives the size of a call
    draw(top, weigh) {
        const width = this.element.clientWidth;
        const whole = weigh(top);
        const kept = this.element.contains(document.activeElement);
        Object.assign(this, { top, boxes: [], rows: [] });
        this.byElement.clear();
        let row = whole > 0 ? [this.box(top, null, 0, width)] : [];
        while (row.length) {
            this.rows.push(row);
            row = row.flatMap(box => this.below(box, weigh, width / whole));
        }
        const height = getComputedStyle(this.element).getPropertyValue('--row');
        this.element.style.height = `calc(${this.rows.length} * ${height})`;
        this.element.replaceChildren(...this.boxes.map(box => box.element));
        if (this.boxes.length) this.enter(this.boxes[0]);
        if (kept && this.boxes.length) this.boxes[0].element.focus({ preventScroll: true });
    }

    below(box, weigh, scale) {
        if (box.call instanceof Bundle && box.call !== this.top) return [];
        let x = box.x;
        const put = (call, width) => {
            box.below.push(this.box(call, box, x, width));
            x += width;
        };
        const calls = box.call.below.map(call => [call, weigh(call) * scale]).sort((a, b) => b[1] - a[1]);
        const narrow = calls.findIndex(([, width]) => width < THIN);
        for (const [call, width] of narrow < 0 ? calls : calls.slice(0, narrow)) put(call, width);
        for (const [some, width] of narrow < 0 ? [] : bundles(calls.slice(narrow))) put(new Bundle(box.call, some), width);
        return box.below;
    }

    box(call, parent, x, width) {
        const { className, v, waiting, text, label } = this.look(call);
        const level = parent ? parent.level + 1 : 0;
        const element = make('div', {
            class: width < WORDS ? `${className} thin` : className,
            role: 'treeitem',
            tabindex: -1,
            'aria-level': level + 1,
            'aria-label': label,
        });
        if (width >= WORDS) element.textContent = fitting(text, width - 8);
        element.style.left = `${x.toFixed(2)}px`;
        element.style.top = `calc(${level} * var(--row))`;
        element.style.width = `${Math.max(THIN, width - 1).toFixed(2)}px`;
        if (v !== undefined) element.style.setProperty('--v', v.toFixed(2));
        if (waiting) element.style.setProperty('--waiting', `${(waiting * 100).toFixed(1)}%`);
        const box = { call, element, parent, level, x, width, below: [] };
        this.boxes.push(box);
        this.byElement.set(element, box);
        return box;
    }

    // Of all boxes, the Tab key reaches the one that was entered last
    enter(box) {
        if (this.at) this.at.element.tabIndex = -1;
        this.at = box;
        box.element.tabIndex = 0;
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.at) return;
        if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            this.choose(this.at.call);
        } else if (event.key in STEPS) {
            event.preventDefault();
            const next = this.step(STEPS[event.key]);
            if (next) next.element.focus();
            else if (event.key === 'ArrowUp' && this.top.parent) this.zoom(this.top.parent);
        }
    }

    step(where) {
        const { at } = this;
        if (where === 'parent') return at.parent;
        if (where === 'child') return at.below[0];
        const row = this.rows[at.level];
        return row[row.indexOf(at) + (where === 'left' ? -1 : 1)];
    }

    // Without drawing all again: which boxes match a search
    mark(states) {
        for (const { call, element } of this.boxes) {
            const state = states(call);
            element.classList.toggle('hit', state === 'hit');
            element.classList.toggle('miss', state === 'miss');
        }
    }
}
