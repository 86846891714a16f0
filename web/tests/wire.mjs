// Captures made packet by packet: raw IPv4 (link type 101), times in microseconds.
import { writeFileSync } from 'node:fs';

const address = text => Buffer.from(text.split('.').map(Number));
const BITS = { F: 1, S: 2, R: 4, P: 8, A: 16 };

/** One IPv4 packet with TCP; `options`: whole words of 32 bits. */
function packet({ from, to, seq, ack = 0, flags, win, options = [], data = '' }) {
  const payload = typeof data === 'number' ? Buffer.alloc(data, 0x78) : Buffer.from(data, 'latin1');
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(from[1], 0);
  tcp.writeUInt16BE(to[1], 2);
  tcp.writeUInt32BE(seq, 4);
  tcp.writeUInt32BE(ack, 8);
  tcp[12] = (5 + options.length / 4) << 4;
  tcp[13] = [...flags].reduce((bits, f) => bits | BITS[f], 0);
  tcp.writeUInt16BE(win, 14);
  const ip = Buffer.alloc(20);
  ip[0] = 0x45;
  ip.writeUInt16BE(40 + options.length + payload.length, 2);
  ip[8] = 64;
  ip[9] = 6;
  address(from[0]).copy(ip, 12);
  address(to[0]).copy(ip, 16);
  return Buffer.concat([ip, tcp, Buffer.from(options), payload]);
}

/** Writes packets, each with `at` in microseconds, in the order of time. */
export function write(path, packets) {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(65535, 16);
  head.writeUInt32LE(101, 20);
  const records = packets
    .toSorted((a, b) => a.at - b.at)
    .flatMap(p => {
      const bytes = packet(p);
      const record = Buffer.alloc(16);
      record.writeUInt32LE(1_700_000_000 + Math.floor(p.at / 1e6), 0);
      record.writeUInt32LE(p.at % 1e6, 4);
      record.writeUInt32LE(bytes.length, 8);
      record.writeUInt32LE(bytes.length, 12);
      return [record, bytes];
    });
  writeFileSync(path, Buffer.concat([head, ...records]));
}

/** A connection: each call makes a packet of one end, with the numbers that follow. */
export class Wire {
  packets = [];
  seq = [1000, 5000];

  constructor(client, server, windows) {
    Object.assign(this, { ends: [client, server], windows });
  }

  /** `from`: 0 the client, 1 the server. */
  send(at, from, data = '', flags = 'A', options = []) {
    const to = 1 - from;
    const ack = flags.includes('A') ? this.seq[to] : 0;
    const [win, length] = [this.windows[from], typeof data === 'number' ? data : data.length];
    const [source, target] = [this.ends[from], this.ends[to]];
    this.packets.push({ at, from: source, to: target, seq: this.seq[from], ack, flags, win, options, data });
    this.seq[from] += length + (/[SF]/.test(flags) ? 1 : 0);
  }
}
