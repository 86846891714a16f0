// What slides in from the side: the evidence of a span, and the page of its cause.

import { patch } from './causes';
import { type Data, frameName, whole } from './data';
import { h } from './dom';
import { duration, moment, percent } from './format';
import { markdown } from './markdown';
import { flagText, lower, markText, type Track, windowText } from './packets';
import { fixes, fixesOn, isNext } from './parts';
import type { Cause, Connection, Exchange, Span } from './types';

/** So many CSS pixels of it must be in sight. */
const ENOUGH = 240;

export class Drawer {
  readonly element = h('aside', {
    class: 'drawer',
    hidden: true,
    tabindex: '-1',
    role: 'dialog',
    'aria-label': 'evidence',
  });
  private back: HTMLElement | null = null;

  constructor(private closed: () => void) {
    this.element.addEventListener('keydown', e => {
      if (e.key === 'Escape') {
        this.close();
        e.stopPropagation();
      }
    });
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  close(): void {
    if (this.element.hidden) return;
    this.element.hidden = true;
    document.body.classList.remove('with-drawer');
    this.back?.focus({ preventScroll: true });
    this.closed();
  }

  private show(...children: (Node | null)[]): void {
    if (this.element.hidden) this.back = document.activeElement as HTMLElement | null;
    this.element.replaceChildren(
      h('button', { class: 'close', type: 'button', 'aria-label': 'close', click: () => this.close() }, '×'),
      ...children.filter(c => c !== null),
    );
    this.element.hidden = false;
    this.element.scrollTop = 0;
    document.body.classList.add('with-drawer');
  }

  /** Scrolls so that what the evidence is about stands where the drawer leaves room. */
  leaveInSight(shows: Element): void {
    const box = shows.getBoundingClientRect();
    const drawer = this.element.getBoundingClientRect();
    const header = document.querySelector('header')?.getBoundingClientRect().bottom ?? 0;
    const bottom = drawer.left < box.right ? drawer.top : innerHeight;
    if (box.top < header || Math.min(box.bottom, box.top + ENOUGH) > bottom) shows.scrollIntoView({ block: 'start' });
  }

  /** Anything else that is about what is in sight. */
  other(...children: HTMLElement[]): void {
    this.show(...children);
  }

  cause(cause: Cause): void {
    this.show(
      h('h2', {}, patch(cause), cause.title),
      h('p', { class: 'dim' }, h('code', {}, cause.id)),
      h('div', { class: 'page' }, cause.page ? markdown(cause.page) : h('p', {}, cause.what)),
    );
  }

  span(data: Data, c: Connection, x: Exchange | undefined, span: Span, track: Track | null): void {
    const cause = data.causes.get(span.cause);
    const length = span.end_ns - span.start_ns;
    const of = x ? `${percent(length / Math.max(1, x.end_ns - x.start_ns))} of exchange ${x.id}` : 'outside exchanges';
    const row = (name: string, value: string | Node | null) =>
      value === null ? [] : [h('dt', {}, name), h('dd', {}, value)];
    const proposals = fixesOn(data, c, span.cause, span.side);
    const next = isNext(cause);
    const filter = `frame.number in {${span.frames.key.length ? span.frames.key.join(',') : `${span.frames.first}..${span.frames.last}`}}`;
    this.show(
      h('h2', {}, patch(cause), cause?.title ?? span.cause),
      h('p', { class: 'big' }, h('b', {}, duration(length)), ` ${of}`),
      h('p', { class: 'why' }, span.why),
      h(
        'dl',
        {},
        ...row('side', span.side),
        ...row('kind', span.detail),
        ...row('from', moment(span.start_ns)),
        ...row('to', moment(span.end_ns)),
        ...row('confidence', percent(span.confidence)),
        ...row(
          'could be',
          span.alternatives.length
            ? span.alternatives.map(a => `${a.cause} (${percent(a.confidence)})`).join(', ')
            : null,
        ),
        ...row('folded', span.folded > 1 ? `${span.folded} repeats of one pattern` : null),
        ...row('source', span.source),
      ),
      h('h3', {}, 'Evidence'),
      evidence(data, span, track),
      span.frames.first ? h('p', { class: 'filter' }, 'in Wireshark: ', h('code', {}, filter)) : null,
      proposals.length ? h('h3', {}, next ? 'Where to look next' : 'What would fix it') : null,
      ...fixes(data, proposals, next, []),
      cause?.page
        ? h(
            'details',
            { class: 'page' },
            h('summary', {}, `What ${cause.id} is and how it is recognised`),
            markdown(cause.page),
          )
        : null,
    );
  }
}

/** The frames of a span that decide, as packets. */
function evidence(data: Data, span: Span, track: Track | null): HTMLElement {
  const frames = whole(data, span.frames);
  if (!span.frames.first) return h('p', {}, 'No packet: nothing was sent in this time.');
  const keys = frames.key.length
    ? frames.key
    : frames.first === frames.last
      ? [frames.first]
      : [frames.first, frames.last];
  const list = h('ol', { class: 'evidence' });
  for (const frame of keys) {
    const i = track ? find(track, frame) : -1;
    if (!track || i < 0) {
      list.append(h('li', {}, h('b', {}, `frame ${frameName(data, frame)}`)));
      continue;
    }
    list.append(
      h(
        'li',
        { class: track.from[i] ? 'down' : 'up' },
        h('b', {}, `frame ${frameName(data, frame)}`),
        ` ${track.from[i] ? 'server → client' : 'client → server'} `,
        h('span', { class: 'dim' }, `${moment(track.t[i])} `),
        h(
          'code',
          {},
          `${flagText(track.flags[i])} seq ${track.seq[i]} ack ${track.ack[i]} len ${track.len[i]} win ${windowText(track, i)}`,
        ),
        markText(track.marks[i]) ? h('em', {}, ` ${markText(track.marks[i])}`) : null,
      ),
    );
  }
  return list;
}

function find(track: Track, frame: number): number {
  const i = lower(track.frame, frame);
  if (track.frame[i] === frame) return i;
  return track.frame.indexOf(frame);
}
