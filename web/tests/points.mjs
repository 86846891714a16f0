// What the graphs of a page hold, as JSON: node tests/points.mjs PAGE.html CONNECTION (scripts/graphs.py reads it).
import { pathToFileURL } from 'node:url';
import { browser, open } from './browser.mjs';

const [path, connection] = process.argv.slice(2);
const chromium = await browser();
try {
  const { page, trouble } = await open(chromium.context, `${pathToFileURL(path)}#connection=${connection}`);
  await page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
  const held = await page.evaluate(() => {
    const { track: k, series } = window.tcpwhy.graphs;
    const pairs = s => Array.from(s.t, (t, i) => [t, s.hi[i]]);
    const sack = i =>
      Array.from({ length: k.sackAt[i + 1] - k.sackAt[i] }, (_, b) => [
        k.sack[2 * (k.sackAt[i] + b)],
        k.sack[2 * (k.sackAt[i] + b) + 1],
      ]);
    return {
      packets: Array.from(k.t, (t, i) => ({
        t,
        frame: k.frame[i],
        from: k.from[i],
        flags: k.flags[i],
        marks: k.marks[i],
        seq: k.seq[i],
        len: k.len[i],
        ack: k.ack[i],
        win: k.win[i],
        sack: sack(i),
      })),
      directions: series.map(d => ({
        segments: Array.from(d.data.t, (t, i) => ({ t, lo: d.data.lo[i], hi: d.data.hi[i], packet: d.packet[i] })),
        ack: pairs(d.ack),
        edge: pairs(d.edge),
        flight: pairs(d.flight),
        window: pairs(d.window),
        rtt: pairs(d.rtt),
        sum: pairs(d.sum),
        sack: Array.from(d.sackT, (t, i) => [t, d.sackLo[i], d.sackHi[i]]),
      })),
    };
  });
  if (trouble.length) throw new Error(trouble.join('; '));
  process.stdout.write(JSON.stringify(held));
} finally {
  await chromium.close();
}
