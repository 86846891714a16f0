// A folder for the files of a run; it goes with the process, whatever ends that, but for kill -9 (scripts/web.py then
// removes it with all that is in TMPDIR).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const FOLDER = mkdtempSync(join(tmpdir(), 'tcpwhy-web-'));

process.on('exit', () => rmSync(FOLDER, { recursive: true, force: true, maxRetries: 3 }));
for (const [signal, number] of [
  ['SIGHUP', 1],
  ['SIGINT', 2],
  ['SIGTERM', 15],
])
  process.once(signal, () => process.exit(128 + number));
