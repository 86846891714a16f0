// Results of the lab on the page of tcpwhy serve, as they come.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, open, until } from './browser.mjs';
import { looksAsBefore } from './golden.mjs';
import { BIN, FOLDER, SMTP } from './program.mjs';
import { ask, own, serve } from './server.mjs';

let chromium;
before(async () => {
  chromium = await browser();
});
after(() => chromium.close());

const shows = (url, options) => open(chromium.context, url, { allow: own(url), script: false, ...options });

/** A result as the lab writes it, into a folder of its own: under another name first, then renamed. */
function put(dir, name, more = {}, text) {
  const folder = join(dir, name);
  mkdirSync(folder, { recursive: true });
  const whole = JSON.stringify({
    tool: 'tcpwhy lab',
    schema: 1,
    name,
    title: `title of ${name}`,
    source: 'somebody',
    verdict: 'as_published',
    said: 'as published',
    measure: 'exchange median',
    published: { value: 40, shown: '40.0 ms' },
    measured: { value: 41.2, shown: '41.2 ms' },
    theory: { value: 40.1, shown: '40.1 ms' },
    disturbed: false,
    captures: [{ end: 'client', file: 'cap.client.pcap' }],
    ...more,
  });
  writeFileSync(join(folder, '.part'), text ?? whole);
  renameSync(join(folder, '.part'), join(folder, 'lab-result.json'));
  return whole;
}

/** Starts a run of the lab of which the second experiment takes long enough to see the first come alone. */
function experiments(dir) {
  const scenario = (name, think) => {
    const path = join(FOLDER, `${name}.toml`);
    writeFileSync(
      path,
      `title = 'a <b>${name}</b> request'\nsource = 'a test'\n[link]\nrtt_ms = 10\n[client]\nnodelay = true\n[server]\nnodelay = true\n` +
        `[workload]\nrequests = 2\nrequest = [100]\nresponse = [200]\nthink_ms = ${think}\n` +
        `[expect]\nmeasure = 'exchange median'\npublished = { value = ${10 + think} }\ntheory = { value = 'rtt + path + ${think}' }\ntolerance = 0.2\nslack = 5\n`,
    );
    return path;
  };
  const run = spawn(BIN, ['lab', 'run', scenario('quick', 1), scenario('slow', 1500), '--keep', dir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = [];
  for (const out of [run.stdout, run.stderr]) out.on('data', d => said.push(d));
  const ended = new Promise(done => run.on('close', code => done({ code, said: said.join('') })));
  return { run, ended };
}

/** One run of the lab beside a page that is open; a sentence where the machine had no time for it. */
async function fillsTheTable(dir) {
  mkdirSync(dir);
  const server = serve(dir);
  const url = await server.ready;
  const { page, trouble } = await shows(url);
  try {
    assert.match(await page.textContent('#none'), /No captures here yet.*lab run --keep/);
    assert.ok((await page.textContent('h1')).endsWith(dir), 'it says what is served');
    assert.ok(!(await page.locator('#lab').isVisible()));
    const { run, ended } = experiments(dir);
    const row = name => page.locator('#rows tr', { hasText: name });
    await row('quick').waitFor();
    if (run.exitCode !== null) return 'the first result came after the end of the run';
    assert.equal(await row('slow').count(), 0);
    const { code, said } = await ended;
    const result = name => JSON.parse(readFileSync(join(dir, name, 'lab-result.json'), 'utf8'));
    const [quick, slow] = ['quick', 'slow'].map(result);
    if (code !== 0 && (quick.disturbed || slow.disturbed)) return `the run was disturbed: ${said}`;
    assert.equal(code, 0, said);
    const cells = await row('quick').locator('td').allTextContents();
    assert.ok(cells[0].includes('a <b>quick</b> request'), 'markup in a title is text');
    assert.deepEqual([cells[1], cells[3].endsWith(' ms'), cells[5]], ['11.0 ms', true, 'clientserverboth']);
    // A round trip and a thought take this long at least; how much longer is the machine's.
    assert.equal(cells[2], quick.measured.shown);
    assert.ok(quick.measured.value >= 11, cells[2]);
    assert.ok(cells[4].startsWith('as published'), cells[4]);
    await row('slow').waitFor();
    assert.match(await page.textContent('#sum'), /^2 experiments, the newest first: 2 as published$/);
    assert.ok((await page.locator('#rows tr').first().textContent()).includes('slow'));
    await row('quick').locator('a', { hasText: 'server' }).click();
    await page.locator('.verdict h1').waitFor();
    assert.match(page.url(), /name=quick%2Fcap\.server\.pcap/);
    assert.deepEqual(trouble, []);
    return null;
  } finally {
    await page.close();
    assert.equal(await server.stop(), 0);
  }
}

test('a lab run fills the table while it goes on', async t => {
  if (process.getuid() !== 0 || !existsSync('/dev/net/tun')) {
    t.skip('the lab needs root and /dev/net/tun');
    return;
  }
  for (let again = 0; again < 4; again++) {
    const lost = await fillsTheTable(join(FOLDER, `run-${again}`));
    if (!lost) return;
    t.diagnostic(lost);
  }
  t.skip('the machine was too busy for a run of the lab, four times');
});

test('what is cut, strange or hostile stands there as text', async () => {
  const dir = join(FOLDER, 'bad');
  mkdirSync(dir);
  const server = serve(dir);
  const url = await server.ready;
  const { page, trouble } = await shows(url);
  const hostile = '<img src=x onerror=alert(1)>';
  const whole = put(dir, 'cut', {}, '');
  put(dir, 'cut', {}, whole.slice(0, whole.length >> 1));
  const row = name => page.locator('#rows tr', { hasText: name });
  await row('cut/lab-result.json').locator('.bad', { hasText: 'is no result of the lab: EOF' }).waitFor();
  put(dir, 'other', {}, '{"tool": "another", "results": []}');
  put(dir, 'hostile', {
    title: hostile,
    said: hostile,
    note: hostile,
    label: hostile,
    verdict: 'constructor',
    captures: [
      { end: hostile, file: '../../etc/passwd' },
      { end: 'server', file: 'missing.pcap' },
    ],
    published: null,
  });
  await row('hostile').waitFor();
  const text = await row('hostile').textContent();
  assert.equal(text.split(hostile).length, 5, text);
  assert.equal(await row('hostile').locator('a').count(), 0, 'captures that are not in the folder have no link');
  assert.equal(await page.locator('img').count(), 0);
  await row('other/lab-result.json').locator('.bad', { hasText: 'missing field' }).waitFor();
  // What is made whole is read again.
  put(dir, 'cut');
  await row('title of cut').waitFor();
  await until(async () => assert.equal(await page.locator('#rows tr').count(), 3));
  const json = JSON.parse((await ask(url, '/api/lab')).text);
  assert.deepEqual(json.map(r => r.file).sort(), [
    'cut/lab-result.json',
    'hostile/lab-result.json',
    'other/lab-result.json',
  ]);
  assert.deepEqual(trouble, []);
  await page.close();
  assert.equal(await server.stop(), 0);
});

test('looks as before: results', async () => {
  const dir = join(FOLDER, 'looks');
  put(dir, 'length-prefix', {
    title: 'A length, then the message: two writes, five requests',
    label: 'client: nagle_delayed_ack 0.200 s of 0.213 s; server: nagle_delayed_ack 0.200 s of 0.213 s',
  });
  put(dir, 'sndbuf16k-writes-1k', {
    verdict: 'explained',
    said: 'deviates, explained',
    scaled: true,
    note: `a current kernel doubles the buffer that is set, and counts its own bookkeeping${', which takes room'.repeat(3)}`,
  });
  put(dir, 'connect-cost', { published: undefined, verdict: 'not_as_expected', said: 'NOT as expected', captures: [] });
  put(dir, 'mariadb-result', {
    measured: undefined,
    theory: undefined,
    verdict: 'not_judged',
    said: 'skipped',
    note: 'mariadbd is not installed: apt-get install mariadb-server',
    captures: [],
  });
  put(dir, 'broken', {}, '{');
  copyFileSync(SMTP, join(dir, 'length-prefix', 'cap.client.pcap'));
  copyFileSync(SMTP, join(dir, 'another.pcap'));
  const server = serve(dir);
  const url = await server.ready;
  for (const width of [1280, 400])
    for (const scheme of ['light', 'dark']) {
      const { page, trouble } = await shows(url, { width, height: width === 400 ? 800 : 900, scheme });
      await page.locator('#rows tr').nth(4).waitFor();
      // Files of one moment have no order; the time of a copy and the name of the folder are never the same.
      await page.evaluate(() => {
        const rows = [...document.querySelectorAll('#rows tr')].sort((a, b) =>
          a.textContent < b.textContent ? -1 : 1,
        );
        document.getElementById('rows').replaceChildren(...rows);
        for (const when of document.querySelectorAll('.when')) when.textContent = '2026-01-01 00:00:00';
        document.querySelector('h1 small').textContent = '/srv/runs';
        document.activeElement?.blur();
      });
      assert.deepEqual(
        await page.locator('#list .name').allTextContents(),
        ['another.pcap'],
        'captures of a result stand with it',
      );
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth),
        width,
        'nothing is wider than the screen',
      );
      await looksAsBefore(page, `results-${width}-${scheme}`);
      assert.deepEqual(trouble, []);
      await page.close();
    }
  assert.equal(await server.stop(), 0);
});
