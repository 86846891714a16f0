// Which keys do what: a window that `?` opens.

import { h } from './dom';

const KEYS: [string, [string, string][]][] = [
  [
    'Everywhere',
    [
      ['Esc', 'back: close what is open, then to the verdict'],
      ['/', 'search connections and exchanges'],
      ['t', 'light or dark'],
      ['?', 'these keys'],
    ],
  ],
  [
    'A connection',
    [
      ['[  ]', 'previous, next exchange'],
      ['Tab, Enter', 'to anything that can be clicked, and into it'],
    ],
  ],
  [
    'Its graphs',
    [
      ['+  −', 'closer, further away'],
      ['←  →', 'earlier, later'],
      ['0', 'the whole connection'],
      ['n  p', 'next, previous cause'],
      ['s', 'sum of what is in sight'],
      ['z', 'only what was chosen'],
    ],
  ],
  [
    'With the mouse',
    [
      ['drag', 'move'],
      ['shift + drag', 'choose a stretch of time, for the sum of its causes'],
      ['wheel', 'zoom, once a graph was clicked'],
      ['double click', 'the whole connection'],
      ['click', 'evidence of the cause under the cursor'],
    ],
  ],
];

export class Keys {
  readonly element = h(
    'dialog',
    {
      class: 'keys',
      'aria-label': 'keys',
      click: (e: MouseEvent) => {
        if (e.target === this.element) this.element.close();
      },
    },
    h('form', { method: 'dialog' }, h('button', { class: 'close', 'aria-label': 'close' }, '×')),
    ...KEYS.flatMap(([title, rows]) => [
      h('h3', {}, title),
      h('dl', {}, ...rows.flatMap(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])),
    ]),
  );

  get open(): boolean {
    return this.element.open;
  }
  show(): void {
    if (!this.element.open) this.element.showModal();
  }
}
