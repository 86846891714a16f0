// Reads the columns that crates/report/src/html/columns.rs writes.

export const MARK = { RETRANSMITTED: 1, OUT_OF_ORDER: 2, DUPLICATE_ACK: 4, ZERO_WINDOW: 8, PROBE: 16, LATE: 32 };
export const FLAG = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16, URG: 32, ECE: 64, CWR: 128 };

export interface Track {
  n: number;
  /** Packets of the connection; more than n if they were thinned out. */
  total: number;
  /** By how many bits windows are shifted; null: not known. */
  shift: [number | null, number | null];
  /** Nanoseconds since the start of the capture. */
  t: Float64Array;
  frame: Float64Array;
  /** 0 from the client, 1 from the server. */
  from: Uint8Array;
  flags: Uint16Array;
  marks: Uint8Array;
  seq: Float64Array;
  len: Float64Array;
  ack: Float64Array;
  /** Bytes; as it stands in the header where `scaled` says no. */
  win: Float64Array;
  /** Blocks of packet i: sack[2k], sack[2k+1] for k from sackAt[i] to sackAt[i+1]. */
  sackAt: Uint32Array;
  sack: Float64Array;
}

class Reader {
  constructor(
    private bytes: Uint8Array,
    public at: number,
  ) {}

  byte(): number {
    return this.bytes[this.at++] ?? 0;
  }

  unsigned(): number {
    let n = 0,
      scale = 1,
      b: number;
    do {
      b = this.byte();
      n += (b & 0x7f) * scale;
      scale *= 128;
    } while (b & 0x80);
    return n;
  }

  signed(): number {
    const n = this.unsigned();
    return n % 2 === 0 ? n / 2 : -(n + 1) / 2;
  }
}

export function decode(bytes: Uint8Array, at: number, total: number): Track {
  const head = new Reader(bytes, at);
  const n = head.unsigned();
  const unit = head.unsigned();
  let time = head.signed();
  // One more than each, 0 where it is not known.
  const scale = () => head.unsigned() - 1;
  const shift = [scale(), scale()].map(s => (s < 0 ? null : Math.min(s, 14))) as Track['shift'];
  const columns: Reader[] = [];
  for (let i = 0; i < 9; i++) {
    const length = head.unsigned();
    columns.push(new Reader(bytes, head.at));
    head.at += length;
  }
  const [ct, cframe, cflags, cmarks, cseq, clen, cack, cwin, csack] = columns;
  const out: Track = {
    n,
    total: total || n,
    shift,
    t: new Float64Array(n),
    frame: new Float64Array(n),
    from: new Uint8Array(n),
    flags: new Uint16Array(n),
    marks: new Uint8Array(n),
    seq: new Float64Array(n),
    len: new Float64Array(n),
    ack: new Float64Array(n),
    win: new Float64Array(n),
    sackAt: new Uint32Array(n + 1),
    sack: new Float64Array(0),
  };
  const next = [0, 0],
    acks = [0, 0],
    windows = [0, 0];
  const blocks: number[] = [];
  let frame = 0;
  for (let i = 0; i < n; i++) {
    time += ct.signed();
    frame += cframe.signed();
    const word = cflags.unsigned();
    const d = word & 1;
    const flags = word >> 1;
    const seq = next[d] + cseq.signed();
    const len = clen.unsigned();
    const ack = acks[d] + cack.signed();
    const window = windows[d] + cwin.signed();
    acks[d] = ack;
    windows[d] = window;
    next[d] = seq + len + (flags & FLAG.SYN ? 1 : 0) + (flags & FLAG.FIN ? 1 : 0);
    out.t[i] = time * unit;
    out.frame[i] = frame;
    out.from[i] = d;
    out.flags[i] = flags;
    out.marks[i] = cmarks.byte();
    out.seq[i] = seq;
    out.len[i] = len;
    out.ack[i] = ack;
    out.win[i] = flags & FLAG.SYN ? window : window * 2 ** (shift[d] ?? 0);
    out.sackAt[i] = blocks.length / 2;
    for (let k = csack.byte(); k > 0; k--) {
      const left = ack + csack.signed();
      blocks.push(left, left + csack.signed());
    }
  }
  out.sackAt[n] = blocks.length / 2;
  out.sack = Float64Array.from(blocks);
  return out;
}

/** The first index whose time is not before `time`. */
export function lower(t: Float64Array, time: number, n = t.length): number {
  let a = 0,
    b = n;
  while (a < b) {
    const m = (a + b) >> 1;
    if (t[m] < time) a = m + 1;
    else b = m;
  }
  return a;
}

/** Whether the window of a packet is in bytes: a SYN's is never scaled (RFC 7323, 2.2). */
export function scaled(k: Track, i: number): boolean {
  return k.shift[k.from[i]] !== null || (k.flags[i] & FLAG.SYN) !== 0;
}

/** `64256`, or `502 (unscaled)` as it stands in the header; no scale makes anything of 0. */
export function windowText(k: Track, i: number): string {
  return k.win[i] === 0 || scaled(k, i) ? String(k.win[i]) : `${k.win[i]} (unscaled)`;
}

/** As tcpdump writes them. */
export function flagText(flags: number): string {
  let text = '';
  for (const [bit, name] of [
    [2, 'SYN'],
    [1, 'FIN'],
    [4, 'RST'],
    [8, 'P'],
    [32, 'U'],
    [64, 'E'],
    [128, 'W'],
    [16, '.'],
  ] as const)
    if (flags & bit) text += name;
  return text;
}

/** What is odd about a packet, in words. */
export function markText(marks: number): string {
  const words: string[] = [];
  if (marks & MARK.RETRANSMITTED) words.push('retransmitted');
  if (marks & MARK.LATE) words.push('fills a hole late');
  if (marks & MARK.OUT_OF_ORDER) words.push('out of order');
  if (marks & MARK.DUPLICATE_ACK) words.push('duplicate ACK');
  if (marks & MARK.ZERO_WINDOW) words.push('zero window');
  if (marks & MARK.PROBE) words.push('probe or keep-alive');
  return words.join(', ');
}
