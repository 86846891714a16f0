// What the page looks like, on screens and on paper: node tests/screens.mjs FOLDER (make screenshots).
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PNG } from 'pngjs';
import { browser, frames, open, settled } from './browser.mjs';
import { FOLDER, LOSS, page as pageOf, SMTP } from './program.mjs';

const folder = resolve(process.argv[2]);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

/** The edges of letters in fewer shades; colours of areas stay: those that are frequent. */
function small(png) {
  const image = PNG.sync.read(png);
  const { data } = image;
  const seen = new Map();
  const colour = i => (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
  for (let i = 0; i < data.length; i += 4) seen.set(colour(i), (seen.get(colour(i)) ?? 0) + 1);
  for (let i = 0; i < data.length; i += 4)
    if (seen.get(colour(i)) < 300) for (let k = i; k < i + 3; k++) data[k] = Math.round(data[k] / 17) * 17;
  return PNG.sync.write(image, { colorType: 2, filterType: 0, deflateLevel: 9, deflateStrategy: 0 });
}

const smtp = pageOf(SMTP, 'smtp.html').url;
const loss = pageOf(LOSS, 'loss.html').url;
const PLACES = {
  verdict: [smtp, null],
  connection: [`${loss}#connection=1`, '.graph-box'],
  exchange: [`${smtp}#connection=1&exchange=19`, '.exchange'],
};

/** Takes a picture of what is in sight, or of the first sheet of paper. */
async function take(name, width, scheme) {
  const [url, at] = PLACES[name];
  const { page } = await open(chromium.context, url, { width, height: width === 400 ? 800 : 900, scheme });
  if (at) {
    await settled(page);
    await page.evaluate(at => document.querySelector(at).scrollIntoView(), at);
    await frames(page, 10);
  }
  writeFileSync(join(folder, `${name}-${width}-${scheme}.png`), small(await page.screenshot()));
  await page.close();
}

async function print(name) {
  const { page } = await open(chromium.context, PLACES[name][0]);
  if (PLACES[name][1]) await settled(page);
  const path = join(FOLDER, name);
  await page.pdf({ path: `${path}.pdf`, format: 'A4' });
  await page.close();
  const done = spawnSync('pdftoppm', ['-r', '80', '-f', '1', '-singlefile', '-png', `${path}.pdf`, path]);
  if (done.error) process.stdout.write(`no sheet of ${name}: pdftoppm is not there (apt-get install poppler-utils)\n`);
  else writeFileSync(join(folder, `${name}-paper.png`), small(readFileSync(`${path}.png`)));
}

const chromium = await browser();
try {
  for (const name of ['verdict', 'connection'])
    for (const width of [1280, 400]) for (const scheme of ['light', 'dark']) await take(name, width, scheme);
  await take('exchange', 1280, 'light');
  for (const name of ['verdict', 'connection']) await print(name);
} finally {
  await chromium.close();
}
