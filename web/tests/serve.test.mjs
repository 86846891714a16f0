// tcpwhy serve, asked by a browser and by hand.
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, open, until } from './browser.mjs';
import { FOLDER, generated, LOSS, percent, SMTP, tcpwhy } from './program.mjs';
import { ask, cookies, own, serve } from './server.mjs';

let chromium, server, url;
const dir = join(FOLDER, 'served');
before(async () => {
  mkdirSync(join(dir, 'sub'), { recursive: true });
  copyFileSync(SMTP, join(dir, 'smtp.pcap'));
  copyFileSync(LOSS, join(dir, 'sub', 'loss.pcap.zst'));
  writeFileSync(join(dir, 'notes.txt'), 'secret');
  symlinkSync('/etc/hostname', join(dir, 'out.pcap'));
  chromium = await browser();
  server = serve(dir, '--max-upload', '1');
  url = await server.ready;
});
after(async () => {
  await chromium.close();
  assert.equal(await server.stop(), 0);
  assert.equal(
    readdirSync(tmpdir()).filter(n => n.startsWith(`tcpwhy-serve-${server.child.pid}-`)).length,
    0,
    'what was dropped is gone',
  );
});

test('from the list to the page, and a capture that comes later', async () => {
  const { page, trouble } = await open(chromium.context, url, { allow: own(url), script: false });
  await page.locator('#list li').nth(1).waitFor();
  await page.selectOption('#sort', 'name');
  await until(async () =>
    assert.deepEqual(await page.locator('#list .name').allTextContents(), ['smtp.pcap', 'sub/loss.pcap.zst']),
  );
  copyFileSync(SMTP, join(dir, 'later.pcap'));
  await page.locator('#list .name', { hasText: 'later.pcap' }).waitFor();
  await page.locator('#list a', { hasText: 'smtp.pcap' }).click();
  await page.locator('.verdict h1', { hasText: '1.16 s (93 %) of it is Nagle' }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('the list: verdicts, orders, a search, two to compare', async () => {
  copyFileSync(SMTP, join(dir, 'again.pcap'));
  const { page, trouble } = await open(chromium.context, url, { allow: own(url), script: false });
  const row = name => page.locator('#list li', { has: page.locator('.name', { hasText: name }) });
  const json = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const most = json.findings.reduce((a, b) => (b.requests_ns > a.requests_ns ? b : a));
  await row('again.pcap')
    .locator('.said', { hasText: `${percent(most.share_of_requests)} ${most.title}` })
    .waitFor();
  await row('loss.pcap.zst').locator('.said b').waitFor();
  const names = () => page.locator('#list .name').allTextContents();
  await page.selectOption('#sort', 'verdict');
  await until(async () => assert.equal((await names())[0], 'again.pcap', 'most of TCP first'));
  await page.selectOption('#sort', 'name');
  await until(async () => {
    const byName = await names();
    assert.deepEqual(byName, byName.toSorted());
  });
  await page.reload();
  await page.locator('#list li').nth(1).waitFor();
  assert.equal(await page.inputValue('#sort'), 'name', 'it is kept');
  const compare = page.locator('#compare');
  for (const name of ['loss.pcap.zst', 'again.pcap']) {
    assert.ok(await compare.isDisabled());
    await row(name).locator('input').check();
  }
  // A third takes the place of the first.
  await row('smtp.pcap').locator('input').check();
  await until(async () => assert.ok(!(await row('loss.pcap.zst').locator('input').isChecked())));
  await compare.click();
  await page.locator('.names', { hasText: 'before' }).waitFor();
  assert.match(page.url(), /before=.*after=/);
  assert.deepEqual(trouble, []);
  await page.close();
  rmSync(join(dir, 'again.pcap'));
});

test('two ends of a connection, ticked, are one page', async () => {
  const ends = ['client.pcap.zst', 'server.pcap.zst'];
  for (const end of ends) copyFileSync(LOSS.replace('server.pcap.zst', end), join(dir, end));
  const { page, trouble } = await open(chromium.context, url, { allow: own(url), script: false });
  const both = page.locator('#both');
  for (const name of ends) {
    const row = page.locator('#list li', { has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });
    await row.waitFor();
    assert.ok(await both.isDisabled());
    await row.locator('input').check();
  }
  await both.click();
  await page.getByText('Two taps:').first().waitFor({ state: 'attached' });
  assert.equal(new URL(page.url()).searchParams.get('name'), 'client.pcap.zst + server.pcap.zst');
  assert.deepEqual(trouble, []);
  await page.close();
  for (const end of ends) rmSync(join(dir, end));
});

test('a capture that cannot be read, and the way back', async () => {
  writeFileSync(join(dir, '<b>bad<b>.pcap'), 'this is no capture');
  const { page } = await open(chromium.context, `${url}view?${new URLSearchParams({ name: '<b>bad<b>.pcap' })}`, {
    allow: own(url),
    script: false,
  });
  assert.match(await page.textContent('body'), /<b>bad<b>\.pcap.*is no capture|<b>bad<b>\.pcap cannot be read/);
  assert.equal(await page.locator('b').count(), 0);
  await page.locator('a', { hasText: 'captures' }).click();
  await page.locator('#list .name', { hasText: 'smtp.pcap' }).waitFor();
  await page.close();
  rmSync(join(dir, '<b>bad<b>.pcap'));
});

test('a file dropped on the page is shown', async () => {
  const { page, trouble } = await open(chromium.context, url, { allow: own(url), script: false });
  const drop = async (name, bytes) =>
    page.evaluate(
      async ([name, base64]) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(base64), c => c.charCodeAt(0))], name));
        document
          .getElementById('drop')
          .dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
      },
      [name, Buffer.from(bytes).toString('base64')],
    );
  await drop('<img src=x onerror=alert(1)>.txt', 'this is no capture');
  await page.locator('#state.bad').waitFor();
  assert.match(await page.textContent('#state'), /<img src=x onerror=alert\(1\)>\.txt.*/);
  await drop('large.pcap', Buffer.alloc((1 << 20) + 1));
  await page.locator('#state.bad', { hasText: 'more than is taken' }).waitFor();
  const { readFileSync } = await import('node:fs');
  await drop('dropped.pcap', readFileSync(SMTP));
  await page.locator('.verdict h1', { hasText: '1.16 s (93 %) of it is Nagle' }).waitFor();
  assert.ok(page.url().includes('name=dropped.pcap'));
  // The browser itself notes the answer 415 as an error of the network.
  assert.deepEqual(
    trouble.filter(t => !/status of 415/.test(t)),
    [],
  );
  await page.close();
});

test('who may ask', async () => {
  const { port } = new URL(url);
  const status = async (path, options) => (await ask(url, path, options)).status;
  assert.equal(await status('/'), 200);
  assert.equal(await status('/', { headers: { Host: `localhost:${port}` } }), 200);
  assert.equal(await status('/', { headers: { Host: `evil.example:${port}` } }), 403);
  assert.equal(await status('/', { headers: { Host: 'evil.example' } }), 403);
  assert.equal(await status('/api/list', { headers: { Origin: 'http://evil.example' } }), 403);
  assert.equal(await status('/api/list', { headers: { 'Sec-Fetch-Site': 'cross-site' } }), 403);
  assert.equal(await status('/api/upload?name=a', { method: 'POST', body: 'x' }), 403);
  assert.equal(
    await status('/api/upload?name=a', {
      method: 'POST',
      headers: { 'X-Tcpwhy': '1', 'Content-Length': '10737418240' },
    }).catch(e => e.code),
    413,
  );
  for (const path of [
    '/../notes.txt',
    '/notes.txt',
    '/%2e%2e/notes.txt',
    '/view?name=../notes.txt',
    '/view?name=notes.txt',
    '/view?name=%2Fetc%2Fpasswd',
    '/view?name=out.pcap',
    '/view?name=sub/../notes.txt',
  ])
    assert.equal(await status(path), 404, path);
  assert.equal(await status('/%zz'), 400);
  assert.equal(await status('/', { method: 'DELETE' }), 405);
  assert.equal(await status('/api/packets?name=smtp.pcap&connection=1&from=x&to=2'), 400);
  const list = await ask(url, '/api/list');
  assert.ok(!list.text.includes('notes') && !list.text.includes('out.pcap'));
  assert.equal(list.headers['x-content-type-options'], 'nosniff');
});

test('the address with the token is the way in, and the token does not stay in it', async () => {
  const other = serve(dir);
  const at = await other.ready;
  const fresh = await browser();
  const page = await fresh.context.newPage();
  assert.equal((await page.goto(at)).status(), 401);
  assert.match(await page.textContent('body'), /open the address that tcpwhy printed/);
  await page.goto(await other.address());
  await page.locator('#list .name', { hasText: 'smtp.pcap' }).waitFor();
  assert.equal(page.url(), at);
  assert.deepEqual(
    (await fresh.context.cookies()).map(c => [c.name, c.httpOnly, c.sameSite]),
    [[`tcpwhy-${new URL(at).port}`, true, 'Strict']],
  );
  // A second server on this host has a cookie of its own: neither logs the other out.
  const second = serve(dir);
  await second.ready;
  await page.goto(await second.address());
  await page.locator('#list .name').first().waitFor();
  assert.equal((await page.goto(at)).status(), 200);
  await fresh.close();
  for (const s of [other, second]) assert.equal(await s.stop(), 0);
});

test('an address that somebody made cannot run a script', async () => {
  const page = await chromium.context.newPage();
  const dialogs = [];
  page.on('dialog', d => {
    dialogs.push(d.message());
    void d.dismiss();
  });
  const split = `${url}?token=x;%20Domain=evil.example%0d%0aContent-Type:%20text/html%0d%0a%0d%0a${encodeURIComponent('<script>alert(1)</script>')}`;
  await page.goto(split);
  await page.locator('#list .name').first().waitFor();
  assert.equal(page.url(), url);
  assert.deepEqual(dialogs, []);
  await page.close();
});

test('more pages than there are streams: the list comes all the same', async () => {
  const streams = await Promise.all(
    Array.from(
      { length: 16 },
      () =>
        new Promise((done, fail) => {
          const { hostname, port, origin } = new URL(url);
          request({ hostname, port, path: '/api/events', headers: { Cookie: cookies.get(origin) } }, done)
            .on('error', fail)
            .end();
        }),
    ),
  );
  const { page } = await open(chromium.context, url, { allow: own(url), script: false });
  await page.locator('#list .name', { hasText: 'smtp.pcap' }).waitFor();
  await page.close();
  for (const s of streams) s.destroy();
});

test('a token is asked for', async () => {
  const other = serve(dir, '--listen', '0.0.0.0');
  const at = await other.ready;
  const token = new URL(await other.address()).searchParams.get('token');
  assert.equal(token.length, 32);
  const status = async path => (await ask(at, path, { plain: true })).status;
  assert.equal(await status('/'), 401);
  assert.equal(await status(`/?token=${token.replace(/./, c => (c === 'a' ? 'b' : 'a'))}`), 401);
  assert.equal(await status(`/?token=${token}`), 303);
  assert.equal((await ask(at, '/')).status, 200);
  assert.match(other.said.text, /HTTP is not encrypted/);
  assert.equal(await other.stop(), 0);
});

test('a zoom brings the packets that were left out', async t => {
  const capture = generated('elephant', '1200000');
  if (!capture) {
    t.skip('cargo could not build the example gen_capture');
    return;
  }
  const big = serve(capture);
  const at = await big.ready;
  const { page, trouble } = await open(chromium.context, `${at}view?name=${capture.split('/').pop()}#connection=1`, {
    allow: own(at),
  });
  await page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
  const n = () =>
    page.evaluate(() => {
      const g = window.tcpwhy.graphs;
      let n = 0;
      for (let i = 0; i < g.track.n; i++) if (g.track.t[i] >= g.from && g.track.t[i] <= g.to) n++;
      return n;
    });
  const kept = await page.evaluate(() => window.tcpwhy.graphs.track.n);
  assert.ok(kept < 400_000, `${kept}`);
  // Away from what was found, where the page holds only the extremes.
  await page.evaluate(() => {
    const g = window.tcpwhy.graphs;
    const l = g.to - g.from;
    g.show(g.from + 0.71 * l, g.from + 0.712 * l);
  });
  const few = await n();
  await page.waitForFunction(before => {
    const g = window.tcpwhy.graphs;
    return g.track !== g.whole.track && g.track.n > before;
  }, few);
  await until(async () => assert.ok((await n()) > 2 * few, `${few} and then ${await n()}`));
  assert.deepEqual(trouble, []);
  await page.close();
  assert.equal(await big.stop(), 0);
});

test('a port that is taken, a folder without captures, a file that is none', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await new Promise(done => taken.on('listening', done));
  const clash = serve('--port', String(taken.address().port));
  assert.equal(await clash.ended, 3);
  assert.match(clash.said.text, /is taken: choose another with --port/);
  taken.close();
  const empty = join(FOLDER, 'empty');
  mkdirSync(empty, { recursive: true });
  const none = serve(empty);
  assert.equal((await ask(await none.ready, '/api/list')).text, '[]');
  assert.match(none.said.text, /no captures in it yet/);
  assert.equal(await none.stop(), 0);
  for (const [path, words] of [
    [join(dir, 'notes.txt'), /notes\.txt/],
    [join(dir, 'nothing.pcap'), /no such file/],
  ]) {
    const bad = serve(path);
    assert.equal(await bad.ended, 3);
    assert.match(bad.said.text, words);
  }
  assert.ok(existsSync(dir));
});
