// Debian's Chromium with a fresh profile: headless, without sandbox and GPU, and without anything of its own that
// would use the network.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { FOLDER } from './scratch.mjs';
import { cookies } from './server.mjs';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** A busy machine gets so much time, in milliseconds, for what takes a moment elsewhere. */
export const PATIENCE = 60_000;
// What Chromium has to say about the machine that it runs on.
const OWN_WORDS = /^\[(?:Intervention|Violation)\]|^Canvas2D: Multiple readback/;

export async function browser(options = {}) {
  const profile = mkdtempSync(join(FOLDER, 'chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    chromiumSandbox: false,
    viewport: { width: 1280, height: 900 },
    deviceScaleFactor: 1,
    timeout: PATIENCE,
    ...options,
    args: [
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--force-color-profile=srgb',
      '--font-render-hinting=none',
    ],
  });
  context.setDefaultTimeout(PATIENCE);
  return {
    context,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** A page that notes every error and every request but the page itself. */
export async function open(context, url, options = {}) {
  const { origin } = new URL(url);
  if (cookies.has(origin)) {
    const [name, value] = cookies.get(origin).split('=');
    await context.addCookies([{ url: origin, name, value, httpOnly: true, sameSite: 'Strict' }]);
  }
  const page = await context.newPage();
  const trouble = [];
  page.on('pageerror', e => trouble.push(`error: ${e.message}`));
  page.on('console', m => {
    if (['error', 'warning'].includes(m.type()) && !OWN_WORDS.test(m.text())) trouble.push(`console: ${m.text()}`);
  });
  page.on('request', r => {
    if (r.url().split('#')[0] !== url.split('#')[0] && !r.url().startsWith('data:') && !options.allow?.test(r.url()))
      trouble.push(`request: ${r.url()}`);
  });
  page.on('dialog', d => {
    trouble.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  await page.setViewportSize({ width: options.width ?? 1280, height: options.height ?? 900 });
  await page.emulateMedia({ colorScheme: options.scheme ?? 'light', reducedMotion: 'reduce' });
  await page.goto(url);
  if (options.script !== false) {
    await page.waitForFunction(() => document.body.dataset.shown !== undefined);
    await frames(page);
  }
  return { page, trouble };
}

/** So many frames: in each, what was asked to be measured or drawn is done. No time, however slow the machine. */
export const frames = (page, n = 3) =>
  page.evaluate(
    n =>
      new Promise(done => {
        const next = left => (left ? requestAnimationFrame(() => next(left - 1)) : done());
        next(n);
      }),
    n,
  );

/** The graphs have drawn what they were told to, and nothing since asked them to draw again. */
export async function settled(page) {
  await page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
  await page.evaluate(
    () =>
      new Promise(done => {
        const watch = (drawn, quiet) => {
          const now = window.tcpwhy.graphs.drawn;
          if (quiet === 4) done();
          else requestAnimationFrame(() => watch(now, now === drawn ? quiet + 1 : 0));
        };
        watch(-1, 0);
      }),
  );
}

/** Holds a claim again and again until it stands; what it gives. The last objection counts after `patience`. */
export async function until(claim, patience = PATIENCE) {
  for (const end = performance.now() + patience; ; ) {
    try {
      return await claim();
    } catch (e) {
      if (performance.now() > end) throw e;
      await new Promise(done => setTimeout(done, 25));
    }
  }
}

/** The least that some tries took, in milliseconds: on a machine that does something else besides, one is undisturbed. */
export async function quickest(bound, { before, once }, tries = 6) {
  let best = Infinity;
  for (let i = 0; i < tries && best > bound; i++) {
    await before();
    const start = performance.now();
    await once();
    best = Math.min(best, performance.now() - start);
  }
  return best;
}
