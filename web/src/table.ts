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
}

const ROW = 34;

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
  private template: string;
  private frame = 0;

  constructor(
    private rows: T[],
    private columns: Column<T>[],
    private options: {
      label: string;
      pick?: (row: T) => void;
      chosen?: (row: T) => boolean;
      empty?: string;
      most?: number;
      minWidth?: number;
    },
  ) {
    this.shown = rows;
    this.template = columns.map(c => c.width).join(' ');
    const head = h('div', { class: 'tr th', role: 'row', style: `grid-template-columns:${this.template}` });
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
      head.append(th);
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
      h(
        'div',
        { class: 'wide', style: options.minWidth ? `min-width:${options.minWidth}px` : '' },
        h('div', { class: 'thead', role: 'rowgroup' }, head),
        this.spacer,
      ),
    );
    this.element = this.body;
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
    if (i >= 0) this.body.scrollTop = Math.max(0, (i - 4) * ROW);
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
    const step = { ArrowDown: ROW, ArrowUp: -ROW, PageDown: 10 * ROW, PageUp: -10 * ROW }[e.key];
    if (step && e.target === this.body) {
      this.body.scrollTop += step;
      e.preventDefault();
    }
  }

  private later(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const all = this.shown.length;
    const most = this.options.most ?? 14;
    const height = Math.min(all, most) * ROW + ROW + 2;
    this.body.style.height = `${height}px`;
    this.spacer.style.height = `${all * ROW}px`;
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - 4);
    const last = Math.min(all, first + most + 10);
    this.window.style.transform = `translateY(${first * ROW}px)`;
    const { pick, chosen } = this.options;
    const rows = this.shown.slice(first, last).map((row, k) => {
      const element = h('div', {
        class: `tr${pick ? ' can' : ''}${chosen?.(row) ? ' chosen' : ''}${(first + k) % 2 ? ' odd' : ''}`,
        role: 'row',
        style: `grid-template-columns:${this.template}`,
        tabindex: pick ? '0' : undefined,
        click: pick ? () => pick(row) : undefined,
        keydown: pick
          ? (e: KeyboardEvent) => {
              if (e.key === 'Enter') pick(row);
            }
          : undefined,
      });
      append(
        element,
        this.columns.map(c => {
          const shown = c.show ? c.show(row) : String(c.value(row));
          return h(
            'div',
            { role: 'cell', class: c.right ? 'right' : '', title: typeof shown === 'string' ? shown : undefined },
            shown,
          );
        }),
      );
      return element;
    });
    this.window.replaceChildren(...rows);
    if (!all) this.window.replaceChildren(h('p', { class: 'empty' }, this.options.empty ?? 'nothing here'));
  }
}
