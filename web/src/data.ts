// What the program put into the page: blocks of deflated bytes in base64, read when they are needed.

import { decode, type Track } from './packets';
import type { Cause, Connection, Frames, Page, Report, Span } from './types';

export interface Data {
  report: Report;
  page: Page;
  causes: Map<string, Cause>;
  byId: Map<number, Connection>;
}

async function block(id: string): Promise<Uint8Array> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page lacks its part ${id}`);
  const text = atob(element.textContent ?? '');
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function load(): Promise<Data> {
  const [report, page] = (await Promise.all(
    ['d-report', 'd-page'].map(async id => JSON.parse(new TextDecoder().decode(await block(id)))),
  )) as [Report, Page];
  return {
    report,
    page,
    causes: new Map(page.causes.map(c => [c.id, c])),
    byId: new Map(report.connections.map(c => [c.id, c])),
  };
}

const tracks = new Map<number, Track>();

/** The packets of a connection; null if the page holds none. */
export async function track(data: Data, connection: number): Promise<Track | null> {
  const known = tracks.get(connection);
  if (known) return known;
  const row = data.page.tracks.find(t => t.connection === connection);
  if (!row) return null;
  const decoded = decode(await block(`d-packets-${row.chunk}`), row.at, row.total);
  tracks.set(connection, decoded);
  return decoded;
}

/** The packets of a stretch of time, from the server that this page came from. */
export async function detail(data: Data, connection: number, from: number, to: number): Promise<Track | null> {
  const served = data.page.served;
  if (!served) return null;
  const query = new URLSearchParams({
    name: served.name,
    connection: String(connection),
    from: String(Math.floor(from)),
    to: String(Math.ceil(to)),
  });
  const answer = await fetch(`/api/packets?${query}`);
  if (!answer.ok) return null;
  return decode(new Uint8Array(await answer.arrayBuffer()), 0, 0);
}

/** Frames of a file, as counted through all inputs. */
export function whole(data: Data, frames: Frames): { first: number; last: number; key: number[] } {
  const before = data.page.frames_before[frames.file ?? 0] ?? 0;
  return { first: frames.first + before, last: frames.last + before, key: frames.key.map(k => k + before) };
}

/** A frame as counted in its file, with the name of the file if there are several. */
export function frameName(data: Data, frame: number): string {
  const before = data.page.frames_before;
  if (before.length < 2) return String(frame);
  let file = before.length - 1;
  while (file > 0 && before[file] >= frame) file--;
  const name = (data.report.capture.files[file] ?? '').split('/').pop();
  return `${frame - before[file]} of ${name}`;
}

/** All spans of a connection in the order of their time, with the exchange that holds them (0: none). */
export function spansOf(c: Connection): { span: Span; exchange: number }[] {
  const all: { span: Span; exchange: number }[] = [];
  for (const span of c.setup?.spans ?? []) all.push({ span, exchange: 0 });
  for (const x of c.exchanges) for (const span of x.spans) all.push({ span, exchange: x.id });
  for (const g of c.gaps) for (const span of g.spans) all.push({ span, exchange: 0 });
  return all.sort((a, b) => a.span.start_ns - b.span.start_ns);
}

/** Where the page shows a stretch of time. */
export interface SpanPlace {
  connection: number;
  exchange: number;
  span: string;
}

const places = new WeakMap<Data, Map<string, SpanPlace>>();

/** The span that some frames prove: of this cause if there is one, else the first that begins with them. */
export function placeOf(data: Data, cause: string, frames: Frames): SpanPlace | undefined {
  let known = places.get(data);
  if (!known) {
    known = new Map();
    for (const c of data.report.connections)
      for (const { span, exchange } of spansOf(c)) {
        const place = { connection: c.id, exchange, span: span.id };
        const { first, last } = whole(data, span.frames);
        for (const key of [`${span.cause} ${first} ${last}`, `${span.cause} ${first}`, `${first}`])
          if (first && !known.has(key)) known.set(key, place);
      }
    places.set(data, known);
  }
  const { first, last } = whole(data, frames);
  return known.get(`${cause} ${first} ${last}`) ?? known.get(`${cause} ${first}`) ?? known.get(`${first}`);
}

/** What is shown of a connection. Times are nanoseconds since the start of the capture. */
export interface Place {
  exchange?: number;
  span?: string;
  /** A stretch that was chosen, for its sum. */
  stretch?: [number, number];
  /** What is in sight, where the rest of the place does not say it. */
  view?: [number, number];
  /** An exchange to look at beside this one: `3/12`. */
  beside?: string;
}

/** The address of a place on this page. */
export function address(place: Place & { connection: number }): string {
  const pair = (p: [number, number]) => p.map(Math.round).join('-');
  return `#${new URLSearchParams({
    connection: String(place.connection),
    ...(place.exchange ? { exchange: String(place.exchange) } : {}),
    ...(place.span ? { span: place.span } : {}),
    ...(place.stretch ? { stretch: pair(place.stretch) } : {}),
    ...(place.view ? { view: pair(place.view) } : {}),
    ...(place.beside ? { beside: place.beside } : {}),
  })}`;
}

/** The place that an address names. */
export function placeIn(p: URLSearchParams): Place {
  const pair = (text: string | null): [number, number] | undefined => {
    const found = /^(-?\d+)-(\d+)$/.exec(text ?? '');
    return found && Number(found[1]) < Number(found[2]) ? [Number(found[1]), Number(found[2])] : undefined;
  };
  return {
    exchange: Number(p.get('exchange')) || undefined,
    span: p.get('span') ?? undefined,
    stretch: pair(p.get('stretch')),
    view: pair(p.get('view')),
    beside: p.get('beside') ?? undefined,
  };
}

/** Times by cause, the longest first. */
function sorted(budget: Record<string, number>): [string, number][] {
  return Object.entries(budget).sort((a, b) => b[1] - a[1]);
}

/** Times of a connection by cause: its setup and exchanges. */
export function timesOf(c: Connection): [string, number][] {
  return sorted(c.budget);
}

/** The same of the time between its exchanges and after them. */
export function gapsOf(c: Connection): [string, number][] {
  return sorted(c.gap_budget);
}

/** The part of a connection's setup and exchanges that is TCP's. */
export function tcpTime(data: Data, c: Connection): number {
  return timesOf(c).reduce((sum, [cause, ns]) => sum + (data.causes.get(cause)?.owner === 'tcp' ? ns : 0), 0);
}

/** The cause to name: the one with most time. */
export function worst(times: [string, number][]): [string, number] | null {
  return times[0] ?? null;
}
