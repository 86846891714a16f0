// The program under test, and captures for it.
import { execFileSync, spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FOLDER } from './scratch.mjs';

export { FOLDER };

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
export const BIN = resolve(process.env.TCPWHY ?? join(ROOT, 'target/release/tcpwhy'));
export const SMTP = join(ROOT, 'captures/zeek__smtp_bdat.pcap');
export const LOSS = join(ROOT, 'captures/lab/loss_middle_one/cap.server.pcap.zst');

/** Runs the program; standard output. */
export function tcpwhy(...args) {
  const done = spawnSync(BIN, args, { encoding: 'utf8', maxBuffer: 1 << 30, cwd: FOLDER });
  if (done.status !== 0) throw new Error(`tcpwhy ${args.join(' ')}: ${done.status} ${done.stderr}`);
  return done.stdout;
}

/** Makes the page of a capture; its address. */
export function page(capture, name) {
  const path = join(FOLDER, name);
  tcpwhy('explain', capture, '--quiet', '--html', path);
  return { path, url: `file://${encodeURI(path)}` };
}

/** A large capture, made by the generator of the benchmark; null where it cannot be built. */
export function generated(...args) {
  const generator = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'release/examples/gen_capture');
  const path = join(FOLDER, `${args.join('-')}.pcap`);
  const build = ['build', '--release', '--locked', '--quiet', '-p', 'tcpwhy-capture', '--example', 'gen_capture'];
  try {
    execFileSync('cargo', build, { stdio: 'ignore', cwd: ROOT });
    execFileSync(generator, [...args, path], { stdio: 'ignore' });
    return path;
  } catch {
    return null;
  }
}

// The words in which the page must say a number, written a second time.
export const duration = ns => {
  if (ns < 1000) return `${ns} ns`;
  const [unit, per] = ns < 999_500 ? ['µs', 1e3] : ns < 999_500_000 ? ['ms', 1e6] : ['s', 1e9];
  const v = ns / per;
  return `${v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0)} ${unit}`;
};
export const percent = share => {
  const p = share * 100;
  return p <= 0 ? '0 %' : p < 0.1 ? '<0.1 %' : `${p.toFixed(p < 0.95 ? 1 : 0)} %`;
};
