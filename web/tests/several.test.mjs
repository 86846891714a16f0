// Two connections whose findings are the same, one of them without its handshake: what is shown of one is about that one.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, open, until } from './browser.mjs';
import { duration, FOLDER, LOSS, page as pageOf, tcpwhy } from './program.mjs';
import { Wire, write } from './wire.mjs';

const CAPTURE = join(FOLDER, 'several.pcap');
const REQUESTS = 12;
let chromium, several;

/** Requests that the server thinks about, the last but one the longest; milliseconds: `longest`, the others from 80. */
function requests(wire, head, longest) {
  for (let i = 0; i < REQUESTS; i++) {
    const at = 10_000 + i * 400_000;
    const think = i === REQUESTS - 2 ? longest * 1000 : 80_000 + i * 900;
    wire.send(at, 0, 'GET /x HTTP/1.1\r\nHost: a\r\nUser-Agent: curl/8\r\n\r\n', 'PA');
    wire.send(at + think, 1, `HTTP/1.1 200 OK\r\nServer: ${head}\r\nContent-Length: 3008\r\n\r\n`, 'PA');
    wire.send(at + think + 40, 0);
    wire.send(at + think + 90, 1, 3008, 'PA');
    wire.send(at + think + 130, 0);
  }
}

function capture() {
  const client = '10.0.0.1';
  const one = new Wire([client, 40001], ['10.0.0.2', 8080], [502, 510]);
  const scale = [3, 3, 7, 0];
  one.send(0, 0, '', 'S', scale);
  one.send(30, 1, '', 'SA', scale);
  one.send(60, 0);
  requests(one, 'nginx', 204);
  // Nobody answers the last one.
  one.send(10_000 + REQUESTS * 400_000, 0, 'bye', 'PA');
  const two = new Wire([client, 40002], ['10.0.0.3', 9001], [98, 97]);
  requests(two, 'BaseHTTP/0.6 Python/3.13', 160);
  write(CAPTURE, [...one.packets, ...two.packets.map(p => ({ ...p, at: p.at + 100 }))]);
}

before(async () => {
  chromium = await browser();
  capture();
  several = pageOf(CAPTURE, 'several.html');
});
after(() => chromium.close());

const shows = (url, options) => open(chromium.context, url, options);
const json = (...more) => JSON.parse(tcpwhy('explain', CAPTURE, '--json', ...more));
const flat = text => text.replace(/\s+/g, ' ');

test('a fix on a connection is about that connection', async () => {
  const { connections, findings } = json();
  const whole = findings.find(f => f.cause === 'server_think');
  assert.equal(whole.connection_count, 2);
  for (const [c, program, port] of [
    [connections[0], 'nginx', 40001],
    [connections[1], 'Python', 40002],
  ]) {
    const f = c.findings.find(x => x.cause === 'server_think');
    const { page, trouble } = await shows(`${several.url}#connection=${c.id}`);
    const card = page.locator(`[data-finding="${f.id}"]`);
    const text = flat(await card.textContent());
    assert.ok(text.includes(`${c.client} > ${c.server}`), text);
    assert.ok(text.includes(`${program} is a guess from the first bytes of the connection`), text);
    for (const other of connections.filter(x => x !== c))
      for (const end of [other.client, other.server]) assert.ok(!text.includes(end), `${end} in ${text}`);
    // The program in sight is not folded away, and the words are those of the text.
    const rows = await card.locator('.fix > ul li').allTextContents();
    const said = flat(tcpwhy('explain', CAPTURE, '--quiet', '--connection', `${c.id}`)).replaceAll('`', '');
    assert.equal(rows.length, 2);
    assert.ok(rows[1].startsWith(program), rows[1]);
    for (const row of rows) assert.ok(said.includes(flat(row)), `${row} in ${said}`);
    assert.match(text, /next: Look into the application/);
    assert.ok(!text.includes('fix:'), text);
    // Beside a span, too.
    const x = c.exchanges.find(e => e.spans.some(s => s.cause === 'server_think'));
    const span = x.spans.find(s => s.cause === 'server_think');
    const other = await shows(`${several.url}#connection=${c.id}&exchange=${x.id}&span=${span.id}`);
    await other.page.locator('.drawer h3', { hasText: 'Where to look next' }).waitFor();
    const beside = await other.page.locator('.drawer').textContent();
    assert.ok(beside.includes(`${port}`) && !beside.includes(`${port === 40001 ? 40002 : 40001}`), beside);
    await other.page.close();
    assert.deepEqual(trouble, []);
    await page.close();
  }
});

test('exchanges are called by their requests', async () => {
  const path = join(FOLDER, 'names.html');
  tcpwhy('explain', CAPTURE, '--quiet', '--names', '--html', path);
  const { page, trouble } = await shows(`file://${encodeURI(path)}`);
  const { findings } = json('--names');
  const think = findings.find(f => f.cause === 'server_think');
  const [{ name, count }] = think.exchange_names;
  assert.equal(name, 'GET /x');
  const card = flat(await page.locator(`[data-finding="${think.id}"]`).textContent());
  assert.ok(card.includes(`among them ${count} x GET /x`), card);
  await page.getByRole('tab', { name: 'Exchanges' }).click();
  await page.getByRole('columnheader', { name: 'name' }).waitFor();
  await page.getByRole('searchbox').fill('get /x');
  assert.ok((await page.locator('.lists .tr').count()) > 5);
  await page.getByRole('searchbox').fill('get /y');
  await page.getByText('no exchange matches').waitFor();
  const one = await shows(`file://${encodeURI(path)}#connection=1&exchange=3`);
  await one.page.getByRole('heading', { name: 'Exchange 3: GET /x' }).waitFor();
  assert.deepEqual([...trouble, ...one.trouble], []);
});

test('a finding of the applications says where to look next, and names the guess', async () => {
  const { findings } = json();
  const f = findings.find(x => x.cause === 'server_think');
  const { page, trouble } = await shows(several.url);
  const card = page.locator(`[data-finding="${f.id}"]`);
  const text = flat(await card.textContent());
  const { name } = f.fixes[0].program;
  // Of two servers it says which one.
  assert.ok(text.includes(`${f.fixes[0].title} (on ${f.fixes[0].applies_to.server})`), text);
  assert.ok(text.includes(`next: ${f.fixes[0].title}`) && !text.includes('fix:'), text);
  assert.ok(text.includes(`(${name} is a guess from the first bytes of the connection)`), text);
  assert.ok(await card.locator('.fix > ul li', { hasText: name }).first().isVisible());
  assert.deepEqual(trouble, []);
  await page.close();
});

test('a window whose scale is not known is not drawn, and marked where it is named', async () => {
  const { connections } = json();
  assert.deepEqual(
    connections.map(c => c.quality.includes('no_window_scale')),
    [false, true],
  );
  const held = page =>
    page.evaluate(() => {
      const { series } = window.tcpwhy.graphs;
      return series.map(d => ({ edge: d.edge.t.length, window: d.window.t.length, flight: Math.max(...d.flight.hi) }));
    });
  const known = await shows(`${several.url}#connection=1`);
  await known.page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
  for (const d of await held(known.page)) assert.ok(d.edge > 5 && d.window > 5, JSON.stringify(d));
  assert.equal(await known.page.locator('.key', { hasText: 'scale is not known' }).count(), 0);
  await known.page.close();

  const [, c] = connections;
  const { page, trouble } = await shows(`${several.url}#connection=2`);
  await page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
  const series = await held(page);
  for (const d of series) assert.deepEqual([d.edge, d.window], [0, 0]);
  assert.equal(series[1].flight, 3008);
  const top = await page.evaluate(() => {
    const panels = window.tcpwhy.graphs.panels;
    return panels.find(p => p.title.startsWith('In flight')).range()[1];
  });
  assert.ok(top >= 3008 && top < 4 * 3008, `${top}`);
  assert.equal(await page.locator('.key', { hasText: 'scale is not known' }).count(), 1);
  assert.equal(await page.locator('.key', { hasText: 'window edge' }).count(), 0);
  assert.deepEqual(trouble, []);
  await page.close();

  const x = c.exchanges[2];
  const span = x.spans.find(s => s.cause === 'server_think');
  const ladder = await shows(`${several.url}#connection=2&exchange=${x.id}&span=${span.id}`, { width: 1900 });
  await ladder.page.locator('.evidence li').first().waitFor();
  for (const line of await ladder.page.locator('.evidence code').allTextContents())
    assert.match(line, /win 9[78] \(unscaled\)$/);
  const table = await ladder.page.locator('[aria-label^="Packets of exchange"] .rows').textContent();
  assert.ok(table.includes('98 (unscaled)') && table.includes('97 (unscaled)'), table);
  await ladder.page.close();
  const text = tcpwhy('explain', CAPTURE, '--quiet', '--connection', '2', '--exchange', `${x.id}`);
  assert.ok(text.includes('win 98 (unscaled)') && !/win 9[78]$/m.test(text), text);
});

test('a small screen cuts neither names of columns nor of causes', async () => {
  const { page, trouble } = await shows(several.url, { width: 400, height: 900 });
  for (const label of ['Servers', 'Connections']) {
    const table = page.locator(`[aria-label="${label}"]`);
    await table.scrollIntoViewIfNeeded();
    const cut = () =>
      table.evaluate(e => {
        const { right, bottom } = e.getBoundingClientRect();
        const beyond = b => b.scrollWidth > b.clientWidth || b.getBoundingClientRect().right > right;
        const cells = [...e.querySelectorAll('.th button, .rows [role=cell]')].filter(beyond).map(b => b.textContent);
        const rows = [...e.querySelectorAll('.rows .tr')].filter(r => r.getBoundingClientRect().bottom > bottom);
        return [...cells, ...rows.map(r => `row ${r.textContent}`)];
      });
    await table.locator('.rows .tr').first().waitFor();
    await until(async () => assert.deepEqual(await cut(), [], label));
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test('requests as a picture: no line through words, and no place for those of no time', async () => {
  const { summary } = json();
  const s = summary.servers.find(x => x.server === '10.0.0.2:8080');
  const none = s.distribution.find(b => b.from_ns === 0);
  assert.equal(none?.requests, 1, 'the request that nobody answered');
  for (const width of [400, 1280]) {
    const { page, trouble } = await shows(several.url, { width });
    await page.locator('[aria-label="Servers"] .rows .tr', { hasText: s.server }).click();
    const box = page.locator('.server', { hasText: s.server });
    assert.equal(await box.locator('.column').count(), s.distribution.length - 1);
    const shortest = s.distribution.find(b => b.from_ns > 0).from_ns;
    assert.equal(await box.locator('figcaption span').first().textContent(), duration(shortest));
    assert.match(await box.textContent(), /1 request of 0 ns \(nothing answered\), not drawn/);
    const marks = await box.locator('.mark').evaluateAll(all =>
      all.map(m => {
        const side = e => (({ left, right, top, bottom }) => ({ left, right, top, bottom }))(e.getBoundingClientRect());
        return { line: side(m), words: side(m.firstElementChild) };
      }),
    );
    const [median, p95] = marks;
    const through = ({ line }, { words }) =>
      line.left > words.left && line.left < words.right && line.top < words.bottom && line.bottom > words.top;
    assert.ok(!through(p95, median), `${width}: ${JSON.stringify(marks)}`);
    assert.ok(p95.words.top >= median.words.bottom, 'words in lines of their own');
    assert.deepEqual(trouble, []);
    await page.close();
  }
  // One server and one request: the verdict has said it.
  const one = await shows(pageOf(LOSS, 'several-loss.html').url);
  assert.equal(await one.page.locator('.servers').count(), 0);
  await one.page.close();
});
