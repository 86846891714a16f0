// A table that draws only the rows in sight: ten thousand connections scroll and sort at once.

import { append, h } from './dom';

export interface Column<T> {
  title: string;
  /** What the title means, where a word is too short to say it. */
  hint?: string;
  /** What the rows are sorted by. */
  value: (row: T) => number | string;
  /** What is shown; `value` if absent. */
  show?: (row: T) => Node | string;
  /** CSS width. */
  width: string;
  right?: boolean;
  /** The first click sorts the largest first. */
  down?: boolean;
  /** Where there is no room for all, the columns of the highest rank give way; those without one stay. */
  rank?: number;
}

/** CSS pixels: of a row, of one in two lines, between columns, beside the row. */
const ROW = 34;
const TWO_LINES = 56;
const GAP = 10.5;
const SIDES = 14;
/** Below this a row has two lines. */
const NARROW = 560;
/** Rows on paper, where nobody scrolls. */
const ON_PAPER = 24;

const tables = new WeakMap<Element, { draw: () => void }>();

/** Draws every table of the page again, at once. */
export function redrawTables(): void {
  for (const body of document.querySelectorAll('.table')) tables.get(body)?.draw();
}

export class Table<T> {
  readonly element: HTMLElement;
  private body: HTMLElement;
  private spacer: HTMLElement;
  private window: HTMLElement;
  private heads: HTMLElement[] = [];
  private shown: T[];
  private wanted: (row: T) => boolean = () => true;
  private by = -1;
  private down = false;
  private frame = 0;
  private head: HTMLElement;
  private note = h('p', { class: 'dim left-out', hidden: true });
  /** For which width the columns were chosen, which they are, and whether rows have two lines. */
  private fitted = -1;
  private fitting: number[] = [];
  private narrow = false;

  constructor(
    private rows: T[],
    private columns: Column<T>[],
    private options: {
      label: string;
      pick?: (row: T) => void;
      chosen?: (row: T) => boolean;
      empty?: string;
      /** Undoes the search. */
      clear?: () => void;
      most?: number;
      /** What a row says where it is narrow: two lines. */
      lines?: (row: T) => [Node | string, Node | string];
    },
  ) {
    this.shown = rows;
    this.head = h('div', { class: 'tr th', role: 'row' });
    columns.forEach((column, i) => {
      const sort = () => this.sort(i, this.by === i ? !this.down : (column.down ?? false));
      const cell = h(
        'button',
        {
          class: column.right ? 'right' : '',
          click: sort,
          type: 'button',
          title: column.hint ? `${column.hint}; click to sort` : 'click to sort',
        },
        column.title,
      );
      const th = h('div', { role: 'columnheader' }, cell);
      this.heads.push(th);
      this.head.append(th);
    });
    this.window = h('div', { class: 'rows', role: 'rowgroup' });
    this.spacer = h('div', { class: 'spacer', role: 'presentation' }, this.window);
    this.body = h(
      'div',
      {
        class: 'table',
        role: 'table',
        tabindex: '0',
        'aria-label': options.label,
        scroll: () => this.later(),
        keydown: (e: KeyboardEvent) => this.key(e),
      },
      h('div', { class: 'wide' }, h('div', { class: 'thead', role: 'rowgroup' }, this.head), this.spacer),
    );
    tables.set(this.body, this);
    this.element = h('div', { class: 'table-box' }, this.body, this.note);
    new ResizeObserver(() => this.later()).observe(this.body);
    this.draw();
  }

  get count(): number {
    return this.shown.length;
  }

  filter(wanted: (row: T) => boolean): void {
    this.wanted = wanted;
    this.update();
    this.body.scrollTop = 0;
  }

  sort(column: number, down: boolean): void {
    this.by = column;
    this.down = down;
    this.heads.forEach((th, i) => {
      if (i === column) th.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    });
    this.update();
  }

  /** Scrolls to a row. */
  reveal(wanted: (row: T) => boolean): void {
    const i = this.shown.findIndex(wanted);
    if (i >= 0) this.body.scrollTop = Math.max(0, (i - 4) * this.row);
    this.later();
  }

  redraw(): void {
    this.later();
  }

  private update(): void {
    this.shown = this.rows.filter(this.wanted);
    const column = this.columns[this.by];
    if (column) {
      const sign = this.down ? -1 : 1;
      const keyed = this.shown.map(row => ({ row, key: column.value(row) }));
      keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0));
      this.shown = keyed.map(k => k.row);
    }
    this.later();
  }

  private key(e: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[e.key];
    if (step && e.target === this.body) {
      this.body.scrollTop += step * this.row;
      e.preventDefault();
    }
  }

  private later(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private get row(): number {
    return this.narrow ? TWO_LINES : ROW;
  }

  /** Which columns there is room for. */
  private fit(): void {
    const width = this.body.clientWidth;
    if (width === this.fitted || !width) return;
    this.fitted = width;
    this.narrow = this.options.lines !== undefined && width < NARROW;
    const { columns } = this;
    const needs = columns.map(c => Number(/\d+(?=px)/.exec(c.width)?.[0] ?? 0) + GAP);
    this.fitting = columns.map((_c, i) => i);
    const total = () => this.fitting.reduce((sum, i) => sum + needs[i], SIDES);
    while (!this.narrow && total() > width) {
      const ranked = this.fitting.filter(i => columns[i].rank);
      if (!ranked.length) break;
      const out = ranked.reduce((a, b) => ((columns[a].rank ?? 0) >= (columns[b].rank ?? 0) ? a : b));
      this.fitting = this.fitting.filter(i => i !== out);
    }
    const template = this.fitting.map(i => columns[i].width).join(' ');
    this.body.style.setProperty('--columns', template);
    this.body.classList.toggle('two-lines', this.narrow);
    (this.body.firstElementChild as HTMLElement).style.minWidth = this.narrow ? '' : `${total()}px`;
    this.heads.forEach((th, i) => {
      th.hidden = !this.fitting.includes(i);
    });
    const left = columns.filter((_c, i) => !this.fitting.includes(i)).map(c => c.title);
    this.note.hidden = !left.length;
    this.note.textContent = `No room here for: ${left.join(', ')}.`;
  }

  /** Draws the rows in sight, now. */
  draw(): void {
    this.fit();
    const all = this.shown.length;
    const onPaper = document.body.classList.contains('on-paper');
    const most = onPaper ? ON_PAPER : (this.options.most ?? 14);
    const { row: height } = this;
    const rows = Math.max(1, Math.min(all, this.narrow ? Math.ceil(most * 0.6) : most));
    // The names of columns may need several lines.
    this.body.style.height = `${rows * height + Math.max(ROW, this.head.offsetHeight) + 2}px`;
    this.spacer.style.height = `${all * height}px`;
    const first = onPaper ? 0 : Math.max(0, Math.floor(this.body.scrollTop / height) - 4);
    const last = Math.min(all, first + most + (onPaper ? 0 : 10));
    this.window.style.transform = `translateY(${first * height}px)`;
    this.window.replaceChildren(
      ...this.shown.slice(first, last).map((row, k) => this.rowOf(row, (first + k) % 2 === 1)),
    );
    if (onPaper && last < all) this.window.append(h('p', { class: 'empty' }, `and ${all - last} more`));
    if (!all)
      this.window.replaceChildren(
        h(
          'p',
          { class: 'empty' },
          this.options.empty ?? 'nothing here',
          this.options.clear
            ? h('button', { type: 'button', class: 'clear', click: this.options.clear }, 'show all')
            : null,
        ),
      );
  }

  private rowOf(row: T, odd: boolean): HTMLElement {
    const { pick, chosen, lines } = this.options;
    const element = h('div', {
      class: `tr${pick ? ' can' : ''}${chosen?.(row) ? ' chosen' : ''}${odd ? ' odd' : ''}`,
      role: 'row',
      tabindex: pick ? '0' : undefined,
      click: pick ? () => pick(row) : undefined,
      keydown: pick
        ? (e: KeyboardEvent) => {
            if (e.key === 'Enter') pick(row);
          }
        : undefined,
    });
    if (this.narrow && lines) {
      append(
        element,
        lines(row).map(line => h('div', { role: 'cell' }, line)),
      );
      return element;
    }
    append(
      element,
      this.fitting.map(i => {
        const c = this.columns[i];
        const shown = c.show ? c.show(row) : String(c.value(row));
        return h(
          'div',
          { role: 'cell', class: c.right ? 'right' : '', title: typeof shown === 'string' ? shown : undefined },
          shown,
        );
      }),
    );
    return element;
  }
}
