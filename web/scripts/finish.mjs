// From Vite's single file to the template that the program carries: the hash of the script for the content security
// policy, the notice of what is inside, and a check that each mark stands there exactly once. An argument names another
// place for it.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const here = new URL('..', import.meta.url);
let page = readFileSync(new URL('dist/index.html', here), 'utf8');
const scripts = [...page.matchAll(/<script\b[^>]*>([\s\S]*?)<\/script>/g)];
if (scripts.length !== 1) throw new Error(`${scripts.length} scripts instead of one`);
const hash = createHash('sha256').update(scripts[0][1]).digest('base64');
page = page.replace('%SCRIPT%', () => `'sha256-${hash}'`);
const licence = readFileSync(new URL('node_modules/uplot/LICENSE', here), 'utf8').trim();
if (licence.includes('--')) throw new Error('the licence would end the comment');
const notice = `<!--\ntcpwhy, MIT or Apache-2.0. This page contains uPlot (https://github.com/leeoniya/uPlot):\n\n${licence}\n-->\n`;
page = page.replace('<html', () => `${notice}<html`);
// The program fills the marks in this order.
let at = 0;
for (const mark of ['%CONNECT%', '%TITLE%', '<!--plain-->', '<!--data-->']) {
  if (page.split(mark).length !== 2) throw new Error(`${mark} must stand in the page once`);
  const found = page.indexOf(mark);
  if (found < at) throw new Error(`${mark} stands too early`);
  at = found;
}
const to = process.argv[2] ?? new URL('../crates/report/assets/report.html', here);
writeFileSync(to, page);
console.log(`${to}: ${page.length} characters`);
