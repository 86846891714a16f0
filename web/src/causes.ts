// Colours and patterns. Forty causes cannot be told apart by colour, eight groups can: the colours are those of Okabe
// and Ito. A pattern has only what somebody who sees two of the three colours of light would mix up with another group
// (docs/page.md); behind graphs there is none. A name stands wherever there is room for it.

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

/** The groups that have a pattern beside their colour. */
const PATTERNED = ['windows', 'congestion', 'opening', 'unknown'];

/** A small patch in the colour and pattern of a group. */
export function patch(cause: Cause | undefined): HTMLElement {
  return h('i', { class: `patch g-${cause?.group ?? 'unknown'}`, 'aria-hidden': 'true' });
}

export function colour(group: string): string {
  return css(`--g-${group}`) || css('--g-unknown');
}

const patterns = new Map<string, CanvasPattern | string>();

export function forgetPatterns(): void {
  patterns.clear();
}

/** The colour of a group for a canvas, with its pattern if it has one. */
export function pattern(context: CanvasRenderingContext2D, group: string): CanvasPattern | string {
  const known = patterns.get(group);
  if (known) return known;
  const made = (PATTERNED.includes(group) && tile(context, group)) || colour(group);
  patterns.set(group, made);
  return made;
}

function tile(context: CanvasRenderingContext2D, group: string): CanvasPattern | null {
  const scale = Math.max(1, Math.round(devicePixelRatio));
  const s = 8 * scale;
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = s;
  const c = canvas.getContext('2d');
  if (!c) return null;
  c.fillStyle = colour(group);
  c.fillRect(0, 0, s, s);
  c.globalAlpha = 0.3;
  c.strokeStyle = c.fillStyle = css('--pattern');
  c.lineWidth = scale;
  const line = (...p: number[]) => {
    c.beginPath();
    for (let i = 0; i < p.length; i += 4) {
      c.moveTo(p[i], p[i + 1]);
      c.lineTo(p[i + 2], p[i + 3]);
    }
    c.stroke();
  };
  if (group === 'windows') line(0, s, s, 0, -1, 1, 1, -1, s - 1, s + 1, s + 1, s - 1);
  if (group === 'congestion') line(0, 0, s, s, -1, s - 1, 1, s + 1, s - 1, -1, s + 1, 1);
  if (group === 'opening') line(s / 2, 0, s / 2, s);
  if (group === 'unknown') {
    c.beginPath();
    c.arc(s / 2, s / 2, scale * 1.6, 0, 7);
    c.fill();
  }
  return context.createPattern(canvas, 'repeat');
}
