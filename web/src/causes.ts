// Colours and patterns. Forty causes cannot be told apart by colour, eight groups can: the colours are those of Okabe
// and Ito, each has a pattern of its own, and a name stands wherever there is room for it.

import { css, h } from './dom';
import type { Cause } from './types';

export const GROUPS: Record<string, { name: string }> = {
  path: { name: 'path and sizes' },
  applications: { name: 'applications' },
  small_writes: { name: 'small writes' },
  windows: { name: 'windows and buffers' },
  congestion: { name: 'congestion control' },
  loss: { name: 'loss' },
  opening: { name: 'opening and closing' },
  unknown: { name: 'not known' },
};

/** A small patch in the colour and pattern of a group. */
export function patch(cause: Cause | undefined): HTMLElement {
  return h('i', { class: `patch g-${cause?.group ?? 'unknown'}`, 'aria-hidden': 'true' });
}

export function colour(group: string): string {
  return css(`--g-${group}`) || css('--g-unknown');
}

const patterns = new Map<string, CanvasPattern | string>();
const pale = new Map<string, CanvasPattern | string>();

export function forgetPatterns(): void {
  patterns.clear();
  pale.clear();
}

/** The pattern of a group for a canvas. `strong`: for ribbons; else pale, for what lies behind a graph. */
export function pattern(context: CanvasRenderingContext2D, group: string, strong: boolean): CanvasPattern | string {
  const kept = strong ? patterns : pale;
  const known = kept.get(group);
  if (known) return known;
  const scale = Math.max(1, Math.round(devicePixelRatio));
  const size = 8 * scale;
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const c = tile.getContext('2d');
  if (!c) return colour(group);
  c.globalAlpha = strong ? 1 : 0.16;
  c.fillStyle = colour(group);
  c.fillRect(0, 0, size, size);
  c.globalAlpha = strong ? 0.4 : 0.32;
  c.strokeStyle = c.fillStyle = strong ? css('--pattern') : colour(group);
  c.lineWidth = scale * (strong ? 1.5 : 1);
  const line = (...p: number[]) => {
    c.beginPath();
    for (let i = 0; i < p.length; i += 4) {
      c.moveTo(p[i], p[i + 1]);
      c.lineTo(p[i + 2], p[i + 3]);
    }
    c.stroke();
  };
  const s = size;
  if (group === 'small_writes' || group === 'loss') line(0, s, s, 0, -1, 1, 1, -1, s - 1, s + 1, s + 1, s - 1);
  if (group === 'congestion' || group === 'loss') line(0, 0, s, s, -1, s - 1, 1, s + 1, s - 1, -1, s + 1, 1);
  if (group === 'windows') line(0, s / 2, s, s / 2);
  if (group === 'opening') line(s / 2, 0, s / 2, s);
  if (group === 'applications' || group === 'unknown') {
    c.beginPath();
    c.arc(s / 2, s / 2, scale * (group === 'unknown' ? 2.2 : 1.3), 0, 7);
    c.fill();
  }
  const made = context.createPattern(tile, 'repeat') ?? colour(group);
  kept.set(group, made);
  return made;
}
