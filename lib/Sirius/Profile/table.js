'use strict';

// The table of the functions, or lines, that took most.

const FIRST = 25; // rows that are shown at once

// A column has a value of a row to sort by, and texts to show
const PLAIN = [
    { name: 'Self', title: 'Time in the function itself', sort: row => row.self.now, cell: row => share(row.self) },
    { name: 'Total', title: 'With what it has called', sort: row => row.total.now, cell: row => share(row.total) },
];
const COMPARED = [
    { name: 'Self', title: 'Time in the function itself, now', sort: row => row.self.now, cell: row => share(row.self) },
    { name: '±', title: 'Change of it, in percentage points', sort: row => Math.abs(row.self.by), cell: row => change(row.self) },
    { name: 'Total', title: 'With what it has called, now', sort: row => row.total.now, cell: row => share(row.total) },
    { name: '±', title: 'Change of it, in percentage points', sort: row => Math.abs(row.total.by), cell: row => change(row.total) },
];

const share = ({ now }) => [now ? show.percent(now) : '–', now ? '' : 'none'];

function change({ by, sure }) {
    const text = show.change(by);
    if (!sure) return [text, 'chance'];
    return [text, by > 0 ? 'more' : 'less'];
}

class Table {
    constructor(element, more, { compared, choose }) {
        Object.assign(this, { element, more, choose, columns: compared ? COMPARED : PLAIN, whole: false });
        element.classList.toggle('compared', compared);
        this.by = this.columns[compared ? 1 : 0];
        this.head();
        more.addEventListener('click', () => {
            this.whole = !this.whole;
            this.draw(this.rows);
        });
    }

    head() {
        this.heads = [make('th', { scope: 'col', text: '' }), ...this.columns.map(column => {
            const button = make('button', { type: 'button', title: column.title, text: column.name });
            button.addEventListener('click', () => {
                this.by = column;
                this.draw(this.rows);
            });
            return make('th', { scope: 'col' }, button);
        })];
        this.element.tHead.replaceChildren(make('tr', {}, ...this.heads));
    }

    // A row has { name, place, className, self, total }, the last two as of Counts.change
    draw(rows) {
        const sorted = rows.map(row => [row, this.by.sort(row)]).filter(([, value]) => value > 0)
            .sort((a, b) => b[1] - a[1]).map(([row]) => row);
        const shown = this.whole ? sorted : sorted.slice(0, FIRST);
        this.rows = rows;
        this.columns.forEach((column, i) => {
            if (column === this.by) this.heads[i + 1].setAttribute('aria-sort', 'descending');
            else this.heads[i + 1].removeAttribute('aria-sort');
        });
        const nothing = make('tr', {}, make('th', { class: 'none', text: 'none' }));
        this.element.tBodies[0].replaceChildren(...shown.length ? shown.map(row => this.row(row)) : [nothing]);
        this.more.hidden = sorted.length <= FIRST;
        this.more.textContent = this.whole ? `Show the first ${FIRST}` : `Show all ${show.count(sorted.length)}`;
    }

    row(row) {
        const words = row.name.split(/(?<=::)/).flatMap((word, i) => (i ? [make('wbr'), word] : [word]));
        const button = make('button', { type: 'button' }, ...words);
        if (row.place) button.append(make('small', { text: row.place }));
        button.addEventListener('click', () => this.choose(row));
        const head = make('th', { scope: 'row', class: row.className }, button);
        head.style.setProperty('--bar', `${(100 * row.self.now).toFixed(1)}%`);
        return make('tr', { title: row.title }, head, ...this.columns.map(column => {
            const [text, className] = column.cell(row);
            return make('td', { class: className, text });
        }));
    }
}
