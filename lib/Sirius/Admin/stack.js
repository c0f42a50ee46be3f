'use strict';

// What the application does: the stack of a worker, and a profile of all. Names of subs and files are shown as text.

const TEXT_MAX = 400; // characters of an error that somebody else may have written

// The dialog with the stack of one worker
class StackDialog {
    constructor(dialog) {
        this.dialog = dialog;
        this.parts = Object.fromEntries(
            ['stack-title', 'stack-line', 'stack-how', 'frames', 'again'].map(id => [id, dialog.querySelector(`#${id}`)]));
        this.parts.again.addEventListener('click', () => this.read());
        dialog.addEventListener('click', event => {
            if (event.target === dialog) dialog.close(); // beside it
        });
    }

    open(worker) {
        this.worker = worker;
        put(this.parts['stack-title'], `Worker ${worker.slot}, PID ${worker.pid}`);
        put(this.parts['stack-line'], '');
        this.say('Reading its stack');
        if (!this.dialog.open) this.dialog.showModal();
        this.read();
    }

    async read() {
        const { pid } = this.worker;
        const answer = await load(`stack.json?pid=${pid}`);
        if (this.worker.pid !== pid) return;
        if (answer.error) this.say(answer.error);
        else this.draw(answer.json);
    }

    say(text) {
        put(this.parts['stack-how'], text);
        this.parts.frames.replaceChildren();
    }

    draw({ line, seconds, kind, frames, state }) {
        put(this.parts['stack-line'], line === undefined ? '' : show.text(line));
        if (line === undefined) return this.say(`It has no request now: ${state}`);
        if (!frames) return this.say('Its stack could not be read at the moment');
        this.say(`${kind === 'cpu' ? 'On CPU' : 'Waiting'}, for ${show.age(seconds)}, innermost first:`);
        const labels = frames.length ? [...frames].reverse() : ['(server)'];
        this.parts.frames.append(...labels.map(label => {
            const item = document.createElement('li');
            const [, sub, place] = label.match(/^(\([^()]*\)|\S*?__ANON__\[.+?:\d+\]|\S+) (.+:\d+)$/) || [null, label, ''];
            put(item.appendChild(document.createElement('b')), show.text(sub.replaceAll('\\x20', ' ')));
            if (place) item.append(` ${show.text(place)}`);
            return item;
        }));
    }
}

// The button for a profile, and what has become of it
class ProfileButton {
    constructor({ button, text, link }) {
        Object.assign(this, { button, text, link });
        button.addEventListener('click', () => this.take());
    }

    async take() {
        this.button.disabled = true;
        const { error } = await load('profile', { method: 'POST' });
        this.refused = error;
        if (error) this.draw(this.state || {});
    }

    draw(state) {
        this.state = state;
        const runs = state.phase === 'running';
        if (runs) this.refused = null;
        this.button.disabled = runs;
        this.link.hidden = state.phase !== 'done' || !state.samples;
        put(this.text, this.refused || this.words(state));
    }

    words({ phase, left, text, at, samples, workers, seconds }) {
        if (phase === 'running') return left > 0 ? `Taking samples, ${Math.ceil(left)} s left` : 'Done in a moment';
        if (phase === 'failed') return show.text(text);
        if (phase !== 'done') return '';
        const time = new Date(at * 1000).toLocaleTimeString();
        if (!samples) return `${time}: no worker had a request for ${show.age(seconds)}`;
        return `${time}: ${show.many(samples, 'sample', 'samples')} of ${show.many(workers, 'worker', 'workers')}`;
    }
}

// The JSON of an answer, or an error in words
async function load(file, options = {}) {
    try {
        const response = await fetch(file, { cache: 'no-store', signal: AbortSignal.timeout(3000), ...options });
        if (!response.ok) return { error: show.text((await response.text()).trim().slice(0, TEXT_MAX)) };
        return { json: response.status === 200 ? await response.json() : null };
    } catch (error) {
        return { error: error.name === 'TimeoutError' ? 'The server does not answer' : 'No connection to the server' };
    }
}
