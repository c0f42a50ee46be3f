'use strict';

// Formats and draws figures: time series and a histogram, as SVG that the style sheet colours.

const SPAN = 300; // seconds that are kept
const WINDOWS = [[60, 15], [120, 30], [SPAN, 60]]; // seconds that a plot shows, and from mark to mark
const GAP = 12; // seconds without a sample that break a line; the server's own samples are 5 seconds apart
const LEFT = 44; // pixels for the values at the axis
const LABEL = 48; // pixels that a time at the axis needs
const DECIMAL = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
const BINARY = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];

// Characters that are invisible, or reverse the direction of text
const UNSEEN = /[\0-\x1f\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

const show = {
    count: n => Math.round(n).toLocaleString('en-US'),

    digits: n => n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0),

    // 3 digits: 4.13k, 41.3k, 413k
    short(n) {
        const unit = DECIMAL.find(([size]) => n >= size);
        if (unit) return show.digits(n / unit[0]) + unit[1];
        return n.toFixed(n >= 10 || Number.isInteger(n) ? 0 : 1);
    },

    bytes(n) {
        const unit = BINARY.find(([size]) => n >= size);
        return unit ? `${show.digits(n / unit[0])} ${unit[1]}` : `${n} B`;
    },

    seconds(s) {
        if (s < 0.001) return `${Math.max(0, s * 1e6).toFixed(0)} µs`;
        if (s < 1) return `${show.digits(s * 1e3)} ms`;
        if (s < 60) return `${show.digits(s)} s`;
        const [days, hours, minutes] = [s / 86400, s / 3600 % 24, s / 60 % 60].map(Math.floor);
        if (days) return `${days} d ${hours} h`;
        return hours ? `${hours} h ${minutes} min` : `${minutes} min ${Math.floor(s % 60)} s`;
    },

    // Times counted in buckets: no more precise than the first bucket, no longer than the last
    bounded(s, [first, last]) {
        if (s <= first) return `< ${show.seconds(first)}`;
        return s >= last ? `> ${show.seconds(last)}` : show.seconds(s);
    },

    // How long something has lasted so far: no more digits than the eye can follow
    age(s) {
        if (s < 1) return `${Math.round(Math.max(0, s) * 1e3)} ms`;
        return s < 60 ? `${s.toFixed(1)} s` : show.seconds(s);
    },

    // How long ago: in the largest unit that is precise enough
    since(s) {
        return s < 60 ? `${Math.max(0, Math.floor(s))} s` : show.seconds(s).replace(/(min) \d+ s$/, '$1');
    },

    percent(part) {
        if (part > 0 && part < 0.0001) return '< 0.01%';
        return `${(part * 100).toFixed(part < 0.01 ? 2 : 1)}%`;
    },

    many: (n, one, more) => `${show.count(n)} ${n === 1 ? one : more}`,

    // For an axis, which has no room for minutes
    secondsShort: s => s < 60 ? show.seconds(s) : `${show.short(s)} s`,

    // For an axis: without zeroes after the point
    mark: text => text.replace(/(\.\d*?)0+(?!\d)/, '$1').replace(/\.(?!\d)/, ''),

    // Text from others, who choose URLs and marks
    text: s => s.replace(UNSEEN, c => `\\u{${c.charCodeAt(0).toString(16)}}`),
};

function svg(parent, name, attributes = {}, text = '') {
    const element = parent.appendChild(document.createElementNS('http://www.w3.org/2000/svg', name));
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
}

// The value below which a share of the counts lies; buckets are [upper bound, count up to it]
function quantile(buckets, share) {
    const last = buckets[buckets.length - 1];
    if (!last || !last[1]) return null;
    const want = last[1] * share;
    const i = buckets.findIndex(([, count]) => count >= want);
    const [from, below] = i ? buckets[i - 1] : [0, 0];
    const [to, upTo] = buckets[i];
    return Number.isFinite(to) ? from + (to - from) * (want - below) / (upTo - below) : from;
}

// The increase between two answers
function between(older, newer) {
    return newer.map(([bound, count], i) => [bound, count - (older[i] ? older[i][1] : 0)]);
}

// 1, 2 or 5 with zeroes
function roundUp(value) {
    const size = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map(n => n * size).find(n => n >= value * 0.999);
}

// Positions from 0 to 1 of the height, and the values at which lines are drawn
const SCALES = {
    linear(values, least) {
        const top = roundUp(Math.max(least, ...values));
        return { y: value => value / top, marks: [top / 2, top] };
    },
    log(values, least) {
        const positive = values.filter(value => value > 0);
        const low = Math.floor(Math.log10(Math.min(least, ...positive)));
        const high = Math.max(low + 2, Math.ceil(Math.log10(Math.max(least, ...positive))));
        const marks = [];
        for (let i = low + 1; i <= high; i++) marks.push(10 ** i);
        return { y: value => value > 0 ? (Math.log10(value) - low) / (high - low) : 0, marks };
    },
};

// The shortest axis that holds all samples
function windowOf(samples, now) {
    return WINDOWS.find(([span]) => !samples.length || now - samples[0].t <= span)
        || WINDOWS[WINDOWS.length - 1];
}

// One plot: series are names of fields of a sample, drawn in this order; a field that is null leaves a gap
class Plot {
    constructor(figure, { series, area = [], scale = 'linear', least = 1, mark }) {
        Object.assign(this, { series, area, mark, least, scale: SCALES[scale] });
        this.svg = figure.querySelector('svg');
        this.grid = svg(this.svg, 'path', { class: 'grid' });
        this.paths = series.map(name => {
            const kind = area.includes(name) ? 'area' : 'curve';
            return [name, svg(this.svg, 'path', { class: `${kind} ${name}` })];
        });
        this.cursor = svg(this.svg, 'path', { class: 'cursor' });
        this.labels = svg(this.svg, 'g');
    }

    draw(samples, now, cursor) {
        const { width, height } = this.size || this.measure();
        const [bottom, top] = [height - 16, 6];
        const [span, step] = windowOf(samples, now);
        const x = t => width - (width - LEFT) * (now - t) / span;
        const values = samples.flatMap(sample => this.series.map(name => sample[name]));
        const scale = this.scale(values.filter(value => value !== null), this.least);
        const y = value => bottom - (bottom - top) * Math.min(1, Math.max(0, scale.y(value)));

        this.drawGrid(scale.marks, y, span, step, width, bottom);
        for (const [name, path] of this.paths) {
            path.setAttribute('d', outline(samples, name, x, y, this.area.includes(name) ? bottom : null));
        }
        this.cursor.setAttribute('d', cursor === null ? '' : `M${x(cursor).toFixed(1)} ${top}V${bottom}`);
    }

    measure() {
        this.size = this.svg.getBoundingClientRect();
        return this.size;
    }

    // Only if it has changed
    drawGrid(marks, y, span, step, width, bottom) {
        const want = JSON.stringify([marks, span, width, bottom]);
        if (want === this.drawn) return;
        this.drawn = want;
        const heights = [bottom, ...marks.map(y)].map(at => Math.round(at) + 0.5);
        this.grid.setAttribute('d', heights.map(at => `M${LEFT} ${at}H${width}`).join(''));
        this.labels.replaceChildren();
        marks.forEach((value, i) => {
            svg(this.labels, 'text', { x: 0, y: heights[i + 1] + 3.5 }, show.mark(this.mark(value)));
        });
        const every = step * Math.ceil(LABEL / ((width - LEFT) * step / span));
        for (let ago = every; ago < span; ago += every) {
            const text = step < 60 ? `−${ago} s` : `−${ago / 60} min`;
            const at = width - (width - LEFT) * ago / span;
            svg(this.labels, 'text', { x: at, y: bottom + 14, class: 'when' }, text);
        }
        svg(this.labels, 'text', { x: width, y: bottom + 14, class: 'now' }, 'now');
    }

    // The time at the pointer; null outside of the plot
    timeAt(event, samples, now) {
        const { right, width } = this.svg.getBoundingClientRect();
        const share = (right - event.clientX) / (width - LEFT);
        return share < 0 || share > 1 ? null : now - windowOf(samples, now)[0] * share;
    }
}

// A line through the samples, closed along the ground if there is one
function outline(samples, name, x, y, ground) {
    let [path, start, last] = ['', null, null];
    const close = () => {
        if (last && ground !== null) path += `L${last.x} ${ground}L${start} ${ground}Z`;
        last = null;
    };
    for (const sample of samples) {
        if (last && (sample[name] === null || sample.t - last.t > GAP)) close();
        if (sample[name] === null) continue;
        const at = { t: sample.t, x: x(sample.t).toFixed(1) };
        if (!last) start = at.x;
        path += `${last ? 'L' : 'M'}${at.x} ${y(sample[name]).toFixed(1)}`;
        last = at;
    }
    close();
    return path;
}

// The share of the counts in each bucket: columns over an axis of powers of 10. Their heights are square roots, so that
// the few long times are visible beside the many short ones.
function drawSpread(element, buckets, marks) {
    const { width, height } = element.getBoundingClientRect();
    const bottom = height - 16;
    const counts = buckets.map(([, count], i) => count - (i ? buckets[i - 1][1] : 0));
    element.replaceChildren();
    svg(element, 'path', { class: 'grid', d: `M0 ${bottom + 0.5}H${width}` });
    if (!counts.some(count => count > 0)) return;

    const first = counts.findIndex(count => count > 0);
    const last = counts.length - 1 - [...counts].reverse().findIndex(count => count > 0);
    const bound = i => i < 0 ? buckets[0][0] / 2 : buckets[Math.min(i, buckets.length - 1)][0];
    const [low, high] = [bound(first - 2), bound(last + 1)].map(Math.log);
    const x = seconds => width * (Math.log(seconds) - low) / (high - low);
    const most = Math.sqrt(Math.max(...counts));
    for (let i = first; i <= last; i++) {
        const [left, right] = [x(bound(i - 1)), x(bound(i))];
        const tall = Math.sqrt(counts[i]) / most * (bottom - 14);
        const wide = Math.max(0.5, right - left - 1);
        svg(element, 'rect', { x: left + 0.5, y: bottom - tall, width: wide, height: tall });
    }
    for (let power = -6; power < 4; power++) {
        const at = x(10 ** power);
        const text = show.mark(show.seconds(10 ** power));
        if (at > 14 && at < width - 14) svg(element, 'text', { x: at, y: bottom + 13 }, text);
    }
    for (const [name, seconds] of marks) {
        const at = Math.min(width - 1, Math.max(0, x(seconds)));
        svg(element, 'path', { class: 'mark', d: `M${at} 12V${bottom}` });
        svg(element, 'text', { x: at, y: 9, class: at > width - 20 ? 'now' : '' }, name);
    }
}
