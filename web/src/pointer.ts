// Fingers, mouse and wheel on a graph.

import { h } from './dom';

/** What can be moved. Times are nanoseconds. */
export interface Surface {
  from: number;
  to: number;
  timeAt: (clientX: number) => number;
  show: (from: number, to: number) => void;
  /** A stretch was drawn over. */
  select: (from: number, to: number) => void;
  zoom: (factor: number, at?: number) => void;
  pan: (share: number) => void;
  reset: () => void;
  click: (e: PointerEvent, plot: boolean) => void;
  /** The pointer has gone, or drags. */
  leave: () => void;
  focused: () => boolean;
}

/** Drag moves, with shift it chooses a stretch; the wheel zooms, two fingers too; a click picks. */
export function listen(on: HTMLElement, plot: boolean, to: Surface, hover?: (e: PointerEvent) => void): void {
  const fingers = new Map<number, number>();
  let start = 0,
    moved = false,
    chosen: HTMLElement | null = null;
  on.addEventListener('pointerdown', e => {
    fingers.set(e.pointerId, e.clientX);
    on.setPointerCapture(e.pointerId);
    start = e.clientX;
    moved = false;
    if (e.shiftKey && plot) {
      chosen = h('div', { class: 'choice' });
      on.append(chosen);
    }
  });
  on.addEventListener('pointermove', e => {
    const before = fingers.get(e.pointerId);
    if (before === undefined) {
      hover?.(e);
      return;
    }
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== e.pointerId)?.[1] ?? e.clientX;
      const [a, b] = [Math.abs(before - other), Math.abs(e.clientX - other)];
      if (a > 10 && b > 10) to.zoom(a / b, to.timeAt(other));
      moved = true;
    } else if (Math.abs(e.clientX - start) > 4 || moved) {
      moved = true;
      to.leave();
      if (chosen) {
        const box = on.getBoundingClientRect();
        const [x0, x1] = [Math.min(start, e.clientX), Math.max(start, e.clientX)];
        chosen.style.left = `${x0 - box.left}px`;
        chosen.style.width = `${x1 - x0}px`;
      } else {
        const by = to.timeAt(before) - to.timeAt(e.clientX);
        to.show(to.from + by, to.to + by);
      }
    }
    fingers.set(e.pointerId, e.clientX);
  });
  const end = (e: PointerEvent) => {
    fingers.delete(e.pointerId);
    if (chosen) {
      chosen.remove();
      chosen = null;
      if (moved && e.type === 'pointerup') {
        const [a, b] = [to.timeAt(start), to.timeAt(e.clientX)];
        to.select(Math.min(a, b), Math.max(a, b));
      }
    } else if (!moved && e.type === 'pointerup') to.click(e, plot);
  };
  on.addEventListener('pointerup', end);
  on.addEventListener('pointercancel', end);
  on.addEventListener('pointerleave', () => {
    to.leave();
  });
  on.addEventListener('dblclick', () => to.reset());
  on.addEventListener(
    'wheel',
    e => {
      // A page that cannot be scrolled past a graph is a trap: the wheel zooms once the graph has the focus.
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) to.pan(e.deltaX / 800);
      else if (e.ctrlKey || to.focused()) to.zoom(1.0015 ** e.deltaY, to.timeAt(e.clientX));
      else return;
      e.preventDefault();
    },
    { passive: false },
  );
}
