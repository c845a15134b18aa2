import { ItemNames, openModel } from './factorflow/index.js';

const MOST_MATCHES = 8;
const RECOMMENDED = 10;

const [search, matches, picked, hint, status, found] = [
  'search',
  'matches',
  'picked',
  'hint',
  'status',
  'found',
].map((id) => document.getElementById(id));

/** The picked films, by id. */
const picks = new Map();
let [model, names, films] = [];
/** Index of the match that Enter picks. */
let active = 0;
let shown = [];

try {
  const [opened, response] = await Promise.all([openModel('model/'), fetch('films.json')]);
  if (!response.ok) throw new Error(`films.json: ${response.status} ${response.statusText}`);
  const entries = await response.json();
  [model, names] = [opened, new ItemNames(entries)];
  films = entries.map(([item, title]) => ({ item, title, words: searched(title) }));
  search.labels[0].textContent = `Add one of ${films.length.toLocaleString('en')} films`;
  search.disabled = false;
  await recommend();
} catch (error) {
  status.textContent = `The page cannot start: ${error.message}`;
}

void keepOffline().catch(() => undefined);

/** Has the service worker copy the files that the page has loaded. Only https and localhost have one. */
async function keepOffline() {
  if (navigator.serviceWorker === undefined || model === undefined) return;
  await navigator.serviceWorker.register('offline.js');
  const { active: worker } = await navigator.serviceWorker.ready;
  const loaded = performance.getEntriesByType('resource').map(({ name }) => name);
  const { port1, port2 } = new MessageChannel();
  port1.addEventListener('message', () => (document.documentElement.dataset.offline = 'ready'));
  port1.start();
  worker.postMessage([location.href, ...loaded], [port2]);
}

/** A title without case and accents. */
function searched(text) {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}

function showMatches() {
  const words = searched(search.value).split(/\s+/).filter(Boolean);
  shown =
    words.length === 0
      ? []
      : films
          .filter(({ item, words: title }) => !picks.has(item) && words.every((word) => title.includes(word)))
          .slice(0, MOST_MATCHES);
  active = 0;
  matches.replaceChildren(
    ...shown.map(({ item, title }, at) => {
      const option = document.createElement('li');
      option.id = `match-${at}`;
      option.setAttribute('role', 'option');
      option.textContent = title;
      // Before the input loses the focus.
      option.addEventListener('pointerdown', (event) => {
        event.preventDefault();
        pick(item, title);
      });
      return option;
    }),
  );
  mark();
}

/** Marks the active match for eyes and screen readers. */
function mark() {
  matches.hidden = shown.length === 0;
  search.setAttribute('aria-expanded', String(shown.length > 0));
  [...matches.children].forEach((option, at) => option.setAttribute('aria-selected', String(at === active)));
  if (shown.length > 0) search.setAttribute('aria-activedescendant', `match-${active}`);
  else search.removeAttribute('aria-activedescendant');
}

function closeMatches() {
  shown = [];
  matches.replaceChildren();
  mark();
}

search.addEventListener('input', showMatches);
search.addEventListener('blur', closeMatches);
search.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') return closeMatches();
  if (shown.length === 0) return undefined;
  if (event.key === 'ArrowDown') active = (active + 1) % shown.length;
  else if (event.key === 'ArrowUp') active = (active + shown.length - 1) % shown.length;
  else if (event.key === 'Enter') pick(shown[active].item, shown[active].title);
  else return undefined;
  event.preventDefault();
  return mark();
});

function pick(item, title) {
  picks.set(item, title);
  search.value = '';
  closeMatches();
  void recommend();
}

/** A row of a list with a button. */
function filmRow(title, label, sign, act) {
  const [row, text, button] = ['li', 'span', 'button'].map((name) => document.createElement(name));
  text.textContent = title;
  button.type = 'button';
  button.textContent = sign;
  button.setAttribute('aria-label', `${label} ${title}`);
  button.addEventListener('click', act);
  row.append(text, button);
  return row;
}

async function recommend() {
  hint.hidden = picks.size > 0;
  picked.replaceChildren(
    ...[...picks].map(([item, title]) =>
      filmRow(title, 'Remove', '×', () => {
        picks.delete(item);
        search.focus();
        void recommend();
      }),
    ),
  );
  if (picks.size === 0) {
    found.replaceChildren();
    status.textContent = 'Pick a film, and recommendations appear here.';
    return;
  }
  const ratings = [...picks.keys()].map((item) => ({ item, rating: 10 }));
  const start = performance.now();
  const { items } = await model.recommend({ ratings }, RECOMMENDED, { names, deny: [...picks.keys()] });
  const milliseconds = performance.now() - start;
  const rows = await Promise.all(items.map((one) => foundRow(one, ratings)));
  found.replaceChildren(...rows);
  status.dataset.milliseconds = String(milliseconds);
  status.textContent = `${items.length} films, found in ${milliseconds.toFixed(1)} ms in this page`;
}

async function foundRow({ item, name }, ratings) {
  const row = filmRow(name, 'I like', '+', () => pick(item, name));
  const { contributions } = await model.explain(ratings, item);
  const because = document.createElement('span');
  because.className = 'because';
  const [{ item: most }] = [...contributions].sort((left, right) => right.share - left.share);
  because.textContent = `because of ${names.get(most)}`;
  row.dataset.item = String(item);
  row.firstChild.append(because);
  return row;
}
