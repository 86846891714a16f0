'use strict';
const byId = id => document.getElementById(id);
const size = n => { const u = ['B', 'KiB', 'MiB', 'GiB', 'TiB']; let i = 0; while (n >= 1024 && i < 4) { n /= 1024; i++; } return (i ? n.toFixed(n < 10 ? 2 : 1) : n) + ' ' + u[i]; };
const view = name => '/view?' + new URLSearchParams({ name });
/** Two captures of the same connections, shown as one. */
const both = (first, second) => `${first} + ${second}`;
const state = byId('state');
// Names and titles come from files: they become text nodes and nothing else.
const make = (tag, attributes, ...children) => {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children.filter(c => c !== null));
  return e;
};

let captures = [], results = [], reading = null;
/** From this many on a list is searched rather than read. */
const MANY = 15;
/** Names of the captures that were ticked, to be compared; the newest tick last. */
let ticked = [];

/** A part as the page of a capture says it. */
const percent = share => share * 100 < 0.1 ? '<0.1 %' : `${(share * 100).toFixed(share < 0.0095 ? 1 : 0)} %`;
const verdictOf = c => c.said?.title ? `${percent(c.said.share)} ${c.said.title}` : c.said?.nothing ?? '';
/** What can be saved stands before what cannot. */
const rank = { tcp: 3, path: 2, none: 1, application: 1 };
const orders = {
  name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
  changed: (a, b) => b.changed.localeCompare(a.changed) || orders.name(a, b),
  size: (a, b) => b.size - a.size || orders.name(a, b),
  verdict: (a, b) => (rank[b.said?.owner] ?? 0) - (rank[a.said?.owner] ?? 0) || (b.said?.share ?? 0) - (a.said?.share ?? 0) || orders.name(a, b),
};

function said(c) {
  if (c.said?.title) return make('span', { class: `said ${c.said.owner}`, title: c.said.sentence }, make('b', {}, percent(c.said.share)), ` ${c.said.title}`);
  if (c.said?.nothing) return make('span', { class: 'said none', title: c.said.nothing }, c.said.nothing);
  return make('span', { class: 'said none' }, c.said?.later ? 'large: open it' : '…');
}

/** A row, kept while nothing of it changes, so that a focus or a tick stays. */
const items = new Map();
function item(c) {
  const key = JSON.stringify(c);
  const known = items.get(c.name);
  if (known?.key === key) return known.row;
  const tick = make('input', { type: 'checkbox', 'aria-label': `compare ${c.name}` });
  tick.checked = ticked.includes(c.name);
  tick.addEventListener('change', () => {
    ticked = ticked.filter(n => n !== c.name);
    if (tick.checked) ticked = [...ticked, c.name].slice(-2);
    showTicks();
  });
  const row = make('li', {}, make('label', { class: 'tick' }, tick), make('a', { href: view(c.name) },
    make('span', { class: 'name' }, c.name, c.dropped ? make('span', { class: 'tag' }, 'dropped') : null), said(c),
    make('span', { class: 'when' }, `${c.changed} UTC`), make('span', { class: 'size' }, size(c.size))));
  items.set(c.name, { key, row, tick });
  return row;
}

function showTicks() {
  ticked = ticked.filter(n => captures.some(c => c.name === n));
  for (const [name, { tick }] of items) tick.checked = ticked.includes(name);
  byId('compare').disabled = byId('both').disabled = ticked.length !== 2;
  byId('compare').textContent = ['tick two to compare them', 'tick one more to compare', 'compare the two'][ticked.length];
}

function showCaptures() {
  // What belongs to a result is linked there.
  const linked = new Set(results.flatMap(r => (r.captures ?? []).map(c => c.name)));
  const own = captures.filter(c => !linked.has(c.name));
  byId('find').hidden = own.length < MANY;
  const words = own.length < MANY ? [] : byId('find').value.toLowerCase().split(/\s+/).filter(Boolean);
  const list = own.filter(c => words.every(w => `${c.name} ${verdictOf(c)}`.toLowerCase().includes(w)));
  list.sort(orders[byId('sort').value]);
  byId('sorting').hidden = byId('pair').hidden = own.length < 2;
  byId('nohit').hidden = list.length > 0 || own.length === 0;
  byId('captures').hidden = own.length === 0;
  byId('none').hidden = captures.length > 0 || results.length > 0;
  for (const name of items.keys()) if (!own.some(c => c.name === name)) items.delete(name);
  // Rows that stand where they stood are not touched: what has the focus keeps it.
  const now = list.map(item), before = [...byId('list').children];
  if (now.length !== before.length || now.some((row, i) => row !== before[i])) {
    const focus = document.activeElement;
    byId('list').replaceChildren(...now);
    if (focus instanceof HTMLElement && byId('list').contains(focus)) focus.focus({ preventScroll: true });
  }
  showTicks();
}

/** Rows that stand already keep their place on the page, so that what was opened stays open. */
const rows = new Map();
let first = true;

function showResults() {
  byId('lab').hidden = results.length === 0;
  const sums = new Map();
  const now = results.map(r => {
    const said = r.problem ? 'not readable' : r.result.said;
    sums.set(said, (sums.get(said) ?? 0) + 1);
    const key = JSON.stringify(r);
    const known = rows.get(r.file);
    if (known?.key === key) return known.row;
    const row = r.problem ? broken(r) : result(r);
    if (!first) row.className = 'new';
    rows.set(r.file, { key, row });
    return row;
  });
  first = false;
  for (const file of rows.keys()) if (!results.some(r => r.file === file)) rows.delete(file);
  byId('rows').replaceChildren(...now);
  const n = results.length;
  byId('sum').textContent = `${n} ${n === 1 ? 'experiment' : 'experiments'}, the newest first: ${[...sums].map(([said, k]) => `${k} ${said}`).join(', ')}`;
}

const broken = r => make('tr', {}, make('td', { class: 'problem', colspan: 6 }, make('b', {}, r.file), ' ', make('span', { class: 'bad' }, r.problem)));

function result({ result: r, captures: taps }) {
  const figure = (name, f) => make('td', { class: 'n', 'data-name': name }, f ? f.shown : '-');
  const mood = { as_published: 'good', as_expected: 'good', explained: 'good', not_as_expected: 'bad', disturbed: 'bad' }[r.verdict] ?? '';
  return make('tr', {},
    make('td', { class: 'scenario', title: r.source ?? '' }, make('b', {}, r.at ? `${r.name} ${r.at}` : r.name),
      make('div', { class: 'dim' }, r.measure ? `${r.title} (${r.measure})` : r.title),
      r.label ? make('details', {}, make('summary', {}, 'where the time went, by the truth of the run'), make('div', { class: 'dim' }, r.label)) : null),
    figure('published', r.published), figure('measured', r.measured), figure('in theory', r.theory),
    make('td', { class: 'verdict' }, make('span', { class: mood }, r.said), r.scaled ? ' (scaled)' : null,
      r.disturbed && r.verdict !== 'disturbed' ? ' (busy machine)' : null, r.note ? note(r.note) : null),
    make('td', { class: taps.length ? 'ends' : 'ends none' }, ...(taps.length ? taps.map(t => make('a', { href: view(t.name) }, t.end)) : ['-']),
      taps.length === 2 ? make('a', { href: view(both(taps[0].name, taps[1].name)), title: 'both ends as one answer' }, 'both') : null));
}

/** A word beside the verdict; a long one on demand, so that rows stay rows. */
const note = text => text.length < 100 ? make('div', { class: 'dim' }, text)
  : make('details', {}, make('summary', {}, 'why'), make('div', { class: 'dim' }, text));

function say(text, share, bad) {
  state.className = bad ? 'bad' : '';
  state.replaceChildren(text);
  if (share !== null && share !== undefined) {
    const bar = document.createElement('progress');
    bar.max = 1; bar.value = share;
    state.append(document.createElement('br'), bar);
  }
}

const events = new EventSource('/api/events');
events.addEventListener('list', e => { captures = JSON.parse(e.data); showCaptures(); });
events.addEventListener('lab', e => { results = JSON.parse(e.data); showResults(); showCaptures(); });
events.addEventListener('progress', e => {
  const p = JSON.parse(e.data);
  if (p.name === reading) say(`reading ${p.name}: ${p.packets} packets`, p.total ? p.bytes / p.total : null);
});
/** Where the server has no stream left (too many pages are open), it is asked again and again instead. */
const ask = async () => {
  try {
    const [list, lab] = await Promise.all(['/api/list', '/api/lab'].map(async path => {
      const answer = await fetch(path);
      if (!answer.ok) throw new Error(answer.statusText);
      return answer.json();
    }));
    captures = list; results = lab;
    showResults(); showCaptures();
    byId('gone').hidden = true;
  } catch { byId('gone').hidden = false; }
  setTimeout(ask, 3000);
};
events.addEventListener('error', () => {
  byId('gone').hidden = false;
  if (events.readyState === EventSource.CLOSED) void ask();
});
events.addEventListener('open', () => { byId('gone').hidden = true; });

function go(name) { reading = name; say(`reading ${name} …`); location.href = view(name); }
document.querySelector('main').addEventListener('click', e => {
  const a = e.target.closest('a');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  go(new URL(a.href).searchParams.get('name'));
});
byId('find').addEventListener('input', showCaptures);
byId('sort').addEventListener('change', () => { try { localStorage.setItem('tcpwhy-sort', byId('sort').value); } catch { /* Not kept, then. */ } showCaptures(); });
try { byId('sort').value = localStorage.getItem('tcpwhy-sort') ?? 'changed'; } catch { /* As it comes. */ }
if (!byId('sort').value) byId('sort').value = 'changed';
byId('all').addEventListener('click', () => { byId('find').value = ''; showCaptures(); byId('find').focus(); });
byId('compare').addEventListener('click', () => {
  // What was captured first is what the other is held against.
  const at = name => captures.find(c => c.name === name)?.changed ?? '';
  const [before, after] = [...ticked].sort((a, b) => at(a).localeCompare(at(b)) || a.localeCompare(b, undefined, { numeric: true }));
  say(`comparing ${before} and ${after} …`);
  location.href = '/compare?' + new URLSearchParams({ before, after });
});

byId('both').addEventListener('click', () => go(both(...ticked)));

function send(file) {
  const request = new XMLHttpRequest();
  request.open('POST', '/api/upload?' + new URLSearchParams({ name: file.name }));
  request.setRequestHeader('X-Tcpwhy', '1');
  request.setRequestHeader('Content-Type', 'application/octet-stream');
  request.upload.onprogress = e => say(`taking ${file.name}: ${size(e.loaded)}`, e.total ? e.loaded / e.total : null);
  request.onload = () => request.status === 200 ? go(JSON.parse(request.responseText).name) : say(request.responseText.trim(), null, true);
  request.onerror = () => say(`${file.name} could not be sent: the server refused it or has ended`, null, true);
  if (file.size > %LIMIT%) { say(`${file.name} has ${size(file.size)}, more than is taken (${size(%LIMIT%)}): start tcpwhy serve with the file or its folder instead`, null, true); return; }
  request.send(file);
}
const drop = byId('drop');
addEventListener('dragover', e => { e.preventDefault(); drop.classList.add('over'); });
addEventListener('dragleave', () => drop.classList.remove('over'));
addEventListener('drop', e => { e.preventDefault(); drop.classList.remove('over'); if (e.dataTransfer.files.length) send(e.dataTransfer.files[0]); });
byId('file').addEventListener('change', e => { if (e.target.files.length) send(e.target.files[0]); e.target.value = ''; });
// Back from a capture: the page may come as it was left.
addEventListener('pageshow', e => { if (e.persisted) { reading = null; state.replaceChildren(); } });
