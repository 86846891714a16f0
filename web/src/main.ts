// The page: reads what the program put into it, and shows what the address asks for.

import 'uplot/dist/uPlot.min.css';
import './style.css';
import { forgetPatterns } from './causes';
import { ConnectionView } from './connection';
import { address, type Data, load, type Place, placeIn, spansOf, whole } from './data';
import { Drawer } from './drawer';
import { forgetVariables, h } from './dom';
import { count } from './format';
import { Keys } from './keys';
import { overview, type Links } from './overview';
import { redrawTables } from './table';
import type { Finding } from './types';

class App {
  private body = h('main', { id: 'main' });
  private view: ConnectionView | null = null;
  private home: HTMLElement | null = null;
  private scrolled = 0;
  private keys = new Keys();
  private drawer = new Drawer(() => {
    const p = this.params();
    if (!['span', 'stretch', 'cause'].some(name => p.has(name))) return;
    const { view } = this;
    if (view) location.hash = address({ ...view.now, connection: view.c.id, span: undefined, stretch: undefined });
    else this.go(q => q.delete('cause'));
  });

  constructor(
    private data: Data,
    root: HTMLElement,
  ) {
    const { capture } = data.report;
    const files = capture.files.map(f => f.split('/').pop()).join(', ');
    root.append(
      h(
        'header',
        {},
        h('a', { href: '#', class: 'logo', title: 'to the verdict' }, 'tcp', h('b', {}, 'why')),
        data.page.served ? h('a', { href: '/' }, 'captures') : null,
        h('span', { class: 'file', title: capture.files.join(', ') }, files),
        h(
          'span',
          { class: 'dim started' },
          [count(capture.packets, 'packet'), capture.start?.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')]
            .filter(Boolean)
            .join(' · '),
        ),
        h(
          'span',
          { class: 'right' },
          h(
            'button',
            { type: 'button', id: 'keys', title: 'keys (?)', 'aria-label': 'keys', click: () => this.keys.show() },
            '?',
          ),
          h(
            'button',
            {
              type: 'button',
              id: 'theme',
              title: 'light or dark (t)',
              'aria-label': 'light or dark',
              click: () => this.theme(),
            },
            '◐',
          ),
        ),
      ),
      this.body,
      this.drawer.element,
      this.keys.element,
      h(
        'footer',
        {},
        `tcpwhy ${data.report.version} · ${data.page.served ? 'nothing of this leaves the machine' : 'this page holds the whole answer and asks nothing of the network'}`,
      ),
    );
    addEventListener('hashchange', () => void this.show());
    document.addEventListener('keydown', e => this.key(e));
    for (const query of ['(prefers-color-scheme: dark)', 'print'])
      matchMedia(query).addEventListener('change', () => this.recolour());
    // Paper has a width of its own: what measures itself must do so on that. What is folded stays folded.
    for (const [event, on] of [
      ['beforeprint', true],
      ['afterprint', false],
    ] as const)
      addEventListener(event, () => {
        document.body.classList.toggle('on-paper', on);
        this.recolour();
        redrawTables();
      });
    void this.show();
  }

  private params(): URLSearchParams {
    return new URLSearchParams(location.hash.slice(1));
  }

  private go(change: (p: URLSearchParams) => void): void {
    const p = this.params();
    change(p);
    location.hash = p.toString();
  }

  private links: Links = {
    connection: (id, exchange) => this.open(id, { exchange }),
    example: f => this.example(f),
    cause: cause =>
      this.go(p => {
        p.delete('span');
        p.delete('stretch');
        p.set('cause', cause.id);
      }),
  };

  private open(id: number, place: Place = {}): void {
    // What was put aside stays until it is taken away.
    const beside = 'beside' in place ? place.beside : (this.params().get('beside') ?? undefined);
    location.hash = address({ connection: id, ...place, beside });
  }

  /** To the span that shows a finding best. */
  private example(f: Finding): void {
    if (!f.example) return;
    const c = this.data.byId.get(f.example.connection);
    const frames = whole(this.data, f.example.frames);
    const found =
      c &&
      spansOf(c).find(({ span }) => {
        const own = whole(this.data, span.frames);
        return span.cause === f.cause && own.first === frames.first && own.last === frames.last;
      });
    this.open(f.example.connection, { exchange: f.example.exchange ?? undefined, span: found?.span.id });
  }

  private async show(): Promise<void> {
    const p = this.params();
    const c = this.data.byId.get(Number(p.get('connection')));
    if (!c) {
      const back = this.view !== null || !this.home;
      this.view = null;
      this.home ??= overview(this.data, this.links);
      this.body.replaceChildren(this.home);
      if (p.has('connection'))
        this.home.prepend(
          h('p', { class: 'missing' }, `There is no connection ${p.get('connection')} in this capture.`),
        );
      if (back) scrollTo(0, this.scrolled);
    } else if (this.view?.c !== c) {
      this.scrolled = scrollY;
      const all = h('a', { href: '#', class: 'back' }, '← all connections');
      this.view = new ConnectionView(
        this.data,
        c,
        this.links,
        this.drawer,
        place => this.open(c.id, place),
        () => this.write(),
      );
      this.body.replaceChildren(all, this.view.element);
      scrollTo(0, 0);
    }
    const cause = this.data.causes.get(p.get('cause') ?? '');
    await this.view?.at(placeIn(p));
    if (cause) this.drawer.cause(cause);
    else if (!p.has('span') && !p.has('stretch')) this.drawer.close();
    document.body.dataset.shown = location.hash;
  }

  /** What is in sight goes into the address, so that it can be sent to somebody. */
  private write(): void {
    const { view } = this;
    const p = this.params();
    // On the way to another place, what is in sight is that of the one before.
    if (document.body.dataset.shown !== location.hash) return;
    if (!view || Number(p.get('connection')) !== view.c.id) return;
    const cause = p.get('cause');
    const hash = address({ ...view.now, connection: view.c.id }) + (cause ? `&cause=${cause}` : '');
    if (hash === location.hash) return;
    history.replaceState(null, '', hash);
    document.body.dataset.shown = location.hash;
  }

  private key(e: KeyboardEvent): void {
    if (
      e.ctrlKey ||
      e.metaKey ||
      e.altKey ||
      e.target instanceof HTMLInputElement ||
      e.target instanceof HTMLSelectElement ||
      this.keys.open ||
      (e.key.startsWith('Arrow') && e.target instanceof Element && e.target.closest('.table, .drawer'))
    )
      return;
    const exchanges = this.view?.c.exchanges ?? [];
    const at = exchanges.findIndex(x => String(x.id) === this.params().get('exchange'));
    const step = (by: number) => {
      const x = exchanges[at < 0 ? 0 : at + by];
      if (x && this.view) this.open(this.view.c.id, { exchange: x.id });
    };
    const actions: Record<string, () => void> = {
      Escape: () => {
        if (this.drawer.open) this.drawer.close();
        else if (this.view) location.hash = '';
      },
      '/': () => {
        if (this.view) location.hash = '';
        setTimeout(() => document.getElementById('search')?.focus(), 50);
      },
      '[': () => step(-1),
      ']': () => step(1),
      t: () => this.theme(),
      '?': () => this.keys.show(),
    };
    const action = actions[e.key];
    if (action) action();
    // The graphs need no click first: there is one set of them on a page.
    else if (!this.view?.graphs?.key(e.key)) return;
    e.preventDefault();
  }

  private theme(): void {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === 'dark'
      : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    this.recolour();
  }

  private recolour(): void {
    forgetVariables();
    forgetPatterns();
    this.view?.redraw();
  }

  /** For tests: the graphs in sight. */
  get graphs() {
    return this.view?.graphs ?? null;
  }
}

async function start(): Promise<void> {
  const data = await load();
  const root = document.getElementById('app');
  if (!root) return;
  const app = new App(data, root);
  Object.assign(window, { tcpwhy: app });
  root.hidden = false;
  document.getElementById('plain')?.remove();
}

start().catch((error: unknown) => {
  // The plain part of the page stays: it says the same without graphs.
  document
    .getElementById('plain')
    ?.prepend(
      h(
        'p',
        { class: 'missing' },
        `The graphs could not be shown (${error instanceof Error ? error.message : String(error)}). A browser of 2023 or later shows them.`,
      ),
    );
});
