// Debian's Chromium with a fresh profile: headless, without sandbox and GPU, and without anything of its own that
// would use the network.
import { mkdtempSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { cookies } from './server.mjs';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const present = existsSync(CHROMIUM);

export async function browser(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), 'tcpwhy-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    chromiumSandbox: false,
    viewport: { width: 1280, height: 900 },
    deviceScaleFactor: 1,
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
    if (['error', 'warning'].includes(m.type())) trouble.push(`console: ${m.text()}`);
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
  if (options.script !== false)
    await page.waitForFunction(() => document.body.dataset.shown !== undefined, null, { timeout: 15000 });
  await page.waitForTimeout(150);
  return { page, trouble };
}
