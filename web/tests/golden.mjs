// Pictures as they were, with tolerance.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { frames } from './browser.mjs';
import { percent, ROOT } from './program.mjs';

// Fonts differ a little between systems: so much may be different.
const DIFFERENT = 0.04;
/** Half the size and 16 shades: pictures stay small, and the edges of letters do not count. */
const half = image => {
  const out = new PNG({ width: image.width >> 1, height: image.height >> 1 });
  for (let y = 0; y < out.height; y++)
    for (let x = 0; x < out.width; x++)
      for (let k = 0; k < 4; k++) {
        const at = (dx, dy) => image.data[((2 * y + dy) * image.width + 2 * x + dx) * 4 + k];
        out.data[(y * out.width + x) * 4 + k] = ((at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1)) >> 2) & 0xf0;
      }
  return out;
};

/** How much of a picture is another than in `golden`, and where. */
function differing(shot, golden) {
  assert.deepEqual([shot.width, shot.height], [golden.width, golden.height]);
  const diff = new PNG({ width: shot.width, height: shot.height });
  const n = pixelmatch(shot.data, golden.data, diff.data, shot.width, shot.height, { threshold: 0.2 });
  return { share: n / (shot.width * shot.height), diff };
}

/** Holds what is in sight to the picture of this name; UPDATE=1 takes a new one. */
export async function looksAsBefore(page, name) {
  const take = async () => half(PNG.sync.read(await page.screenshot()));
  const path = join(ROOT, 'web/tests/golden', `${name}.png`);
  let shot = await take();
  if (process.env.UPDATE) writeFileSync(path, PNG.sync.write(shot, { colorType: 2, filterType: 4 }));
  assert.ok(existsSync(path), `there is no ${name}.png in web/tests/golden: UPDATE=1 takes one`);
  const golden = PNG.sync.read(readFileSync(path));
  let { share, diff } = differing(shot, golden);
  // On a busy machine a picture may be taken before its last frame was drawn.
  for (let again = 0; again < 20 && share > DIFFERENT; again++) {
    await frames(page, 10);
    shot = await take();
    ({ share, diff } = differing(shot, golden));
  }
  if (share > DIFFERENT) {
    const out = join(ROOT, 'web/tests/out');
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, `${name}.png`), PNG.sync.write(shot));
    writeFileSync(join(out, `${name}-diff.png`), PNG.sync.write(diff));
  }
  assert.ok(
    share <= DIFFERENT,
    `${percent(share)} of the pixels differ: web/tests/out (UPDATE=1 takes the new picture)`,
  );
}
