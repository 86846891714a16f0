// Reading the page: what is in sight, which keys work, what links lead where, small screens and paper.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, open, settled, until } from './browser.mjs';
import { duration, FOLDER, LOSS, page as pageOf, ROOT, SMTP, tcpwhy } from './program.mjs';

const MANY = join(ROOT, 'captures/PcapPlusPlus__pcapng-example.pcapng');
const SIX = join(ROOT, 'captures/PcapPlusPlus__raw_ip.pcap');
let chromium, smtp, loss, many, six;

before(async () => {
  chromium = await browser();
  smtp = pageOf(SMTP, 'reading-smtp.html');
  loss = pageOf(LOSS, 'reading-loss.html');
  many = pageOf(MANY, 'reading-many.html');
  six = pageOf(SIX, 'reading-six.html');
});
after(() => chromium.close());

const shows = (url, options) => open(chromium.context, url, options);
/** Where a span is drawn in the first plot, and what may hide it. */
const sight = (page, [start, end]) =>
  page.evaluate(
    ([start, end]) => {
      const g = window.tcpwhy.graphs;
      const box = document.querySelector('.u-over').getBoundingClientRect();
      const x = t => box.left + ((t - g.from) / (g.to - g.from)) * box.width;
      const drawer = document.querySelector('.drawer').getBoundingClientRect();
      const header = document.querySelector('header').getBoundingClientRect().bottom;
      return { x0: x(start), x1: x(end), top: box.top, drawer: { left: drawer.left, top: drawer.top }, header };
    },
    [start, end],
  );

test('the drawer hides no evidence', async () => {
  const json = JSON.parse(tcpwhy('explain', LOSS, '--json'));
  const c = json.connections[0];
  const x = c.exchanges[0];
  const last = x.spans.at(-1);
  for (const [width, height] of [
    [1280, 900],
    [1280, 500],
    [800, 900],
    [400, 800],
  ]) {
    const { page, trouble } = await shows(`${loss.url}#connection=${c.id}&exchange=${x.id}&span=${last.id}`, {
      width,
      height,
    });
    await settled(page);
    await until(async () => {
      const s = await sight(page, [last.start_ns, last.end_ns]);
      const clear = s.x1 <= s.drawer.left + 1 || s.top + 60 < s.drawer.top;
      assert.ok(clear && s.x0 >= 0 && s.x1 <= width, `${width}x${height}: ${JSON.stringify(s)}`);
      assert.ok(s.top >= s.header - 1 && s.top < height, `${width}x${height}: ${JSON.stringify(s)}`);
    });
    // A span that was chosen in the ladder stays in sight there.
    await page.locator('.ladder .band').first().dispatchEvent('click');
    await page.locator('.ladder .band').first().and(page.locator('.chosen')).waitFor();
    await until(async () => {
      const band = await page.locator('.ladder .band').first().boundingBox();
      const drawer = await page.locator('.drawer').boundingBox();
      assert.ok(band.y < (drawer.x > 0 ? height : drawer.y) && band.y + band.height > 0, `${width}x${height} ladder`);
    });
    assert.deepEqual(trouble, []);
    await page.close();
  }
});

test('keys of the graphs need no click first', async () => {
  const { page, trouble } = await shows(`${smtp.url}#connection=1`);
  await settled(page);
  const length = () => page.evaluate(() => window.tcpwhy.graphs.to - window.tcpwhy.graphs.from);
  const whole = await length();
  await page.keyboard.press('+');
  await until(async () => assert.ok((await length()) < whole));
  await page.keyboard.press('0');
  await until(async () => assert.equal(await length(), whole));
  const before = page.url();
  await page.keyboard.press('n');
  await page.locator('.drawer').waitFor();
  // The address follows a moment later.
  await page.waitForFunction(url => location.href !== url, before);
  const first = page.url();
  await page.keyboard.press('n');
  await page.waitForFunction(url => location.href !== url, first);
  await page.keyboard.press('p');
  await page.waitForFunction(url => location.href === url, first);
  assert.deepEqual(trouble, []);
  await page.close();
});

/** Time by cause between two moments, from the JSON. */
function within(c, from, to) {
  const sums = new Map();
  for (const part of [c.setup, ...c.exchanges, ...c.gaps])
    for (const s of part?.spans ?? []) {
      const ns = Math.min(s.end_ns, to) - Math.max(s.start_ns, from);
      if (ns > 0) sums.set(s.cause, (sums.get(s.cause) ?? 0) + ns);
    }
  return sums;
}

test('the sum of a stretch of time', async () => {
  const [c] = JSON.parse(tcpwhy('explain', SMTP, '--json')).connections;
  // From the middle of one exchange into the middle of another.
  const [a, b] = [c.exchanges[3], c.exchanges[9]];
  const [from, to] = [a, b].map(x => Math.round((x.start_ns + x.end_ns) / 2));
  const expected = within(c, from, to);
  assert.ok(expected.size > 2);
  const { page, trouble } = await shows(`${smtp.url}#connection=1&stretch=${from}-${to}`);
  await page.locator('.drawer', { hasText: 'A stretch of time' }).waitFor();
  await settled(page);
  assert.equal(await page.locator('.drawer .big b').textContent(), duration(to - from));
  for (const [cause, ns] of expected)
    assert.equal(await page.locator(`.drawer [data-cause="${cause}"] .time`).textContent(), duration(ns), cause);
  assert.equal(
    await page
      .locator('.drawer dl')
      .textContent()
      .then(t => t.match(/exchanges(\d+)/)[1]),
    '7',
  );
  // By the mouse, and by a key: what is in sight.
  await page.keyboard.press('Escape');
  await page.locator('.drawer').waitFor({ state: 'hidden' });
  const whole = await page.evaluate(() => window.tcpwhy.graphs.to - window.tcpwhy.graphs.from);
  await page.keyboard.press('+');
  await page.waitForFunction(ns => window.tcpwhy.graphs.to - window.tcpwhy.graphs.from < ns, whole);
  await page.keyboard.press('s');
  await page.locator('.drawer', { hasText: 'A stretch of time' }).waitFor();
  const [x, y] = await page.evaluate(() => [window.tcpwhy.graphs.from, window.tcpwhy.graphs.to].map(Math.round));
  assert.match(page.url(), new RegExp(`stretch=${x}-${y}`));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('what is in sight is in the address', async () => {
  const { page, trouble } = await shows(`${loss.url}#connection=1`);
  await settled(page);
  const view = p => p.evaluate(() => [window.tcpwhy.graphs.from, window.tcpwhy.graphs.to]);
  await page.keyboard.press('+');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => location.hash.includes('view='));
  const [from, to] = await view(page);
  const other = await shows(page.url());
  await settled(other.page);
  await until(async () => {
    const again = await view(other.page);
    assert.ok(Math.abs(again[0] - from) < 2 && Math.abs(again[1] - to) < 2, `${again} for ${from}-${to}`);
  });
  await other.page.close();
  await page.keyboard.press('0');
  await page.waitForFunction(() => location.hash === '#connection=1');
  await page.keyboard.press('+');
  // A cause that is in sight is chosen without moving, also by its address.
  await page.keyboard.press('n');
  await page.locator('.drawer').waitFor();
  // The address says what is in sight once that has stood still for a moment.
  await page.waitForFunction(() => location.hash.includes('view=') && location.hash.includes('span='));
  const third = await shows(page.url());
  await settled(third.page);
  await until(async () =>
    assert.deepEqual((await view(third.page)).map(Math.round), (await view(page)).map(Math.round)),
  );
  await third.page.close();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('two exchanges beside each other', async () => {
  const [c] = JSON.parse(tcpwhy('explain', SMTP, '--json')).connections;
  const by = (x, y) => x.end_ns - x.start_ns - (y.end_ns - y.start_ns);
  const slow = c.exchanges.toSorted((x, y) => by(y, x))[0];
  const fast = c.exchanges.filter(x => x.spans.length).toSorted(by)[0];
  const { page, trouble } = await shows(`${smtp.url}#connection=1&exchange=${fast.id}`);
  await page.locator('.exchange button', { hasText: 'put aside' }).click();
  await page.locator('.beside', { hasText: 'is put aside' }).waitFor();
  await page.locator('[aria-label="Exchanges"]').scrollIntoViewIfNeeded();
  await page.evaluate(id => {
    location.hash = location.hash.replace(/exchange=\d+/, `exchange=${id}`);
  }, slow.id);
  const box = page.locator('.beside');
  await box.locator('h2', { hasText: `1/${fast.id} beside 1/${slow.id}` }).waitFor();
  await until(async () => {
    const text = await box.textContent();
    assert.ok(text.includes(`1/${slow.id} takes ${duration(by(slow, fast))} longer`), text);
  });
  const sum = (x, cause) => x.spans.filter(s => s.cause === cause).reduce((n, s) => n + s.end_ns - s.start_ns, 0);
  const [worst] = slow.spans
    .map(s => [s.cause, sum(slow, s.cause) - sum(fast, s.cause)])
    .toSorted((p, q) => Math.abs(q[1]) - Math.abs(p[1]))[0];
  const row = await box.locator('tr').nth(1).locator('td').allTextContents();
  assert.equal(row[2], duration(sum(slow, worst)));
  assert.equal(row[3], `+${duration(sum(slow, worst) - sum(fast, worst))}`);
  const [p, q] = await box.locator('.strip .bar').evaluateAll(all => all.map(e => e.getBoundingClientRect().width));
  const ratio = (fast.end_ns - fast.start_ns) / (slow.end_ns - slow.start_ns);
  assert.ok(Math.abs(p / q - Math.max(0.01, ratio)) < 0.02, `${p} of ${q}`);
  await box.locator('summary').click();
  await until(async () => assert.equal(await box.locator('.ladder').count(), 2));
  // It stays while others are opened, and can be sent.
  await page.keyboard.press(']');
  await page.locator('.exchange h2', { hasText: `Exchange ${slow.id + 1}` }).waitFor();
  assert.match(page.url(), new RegExp(`beside=1%2F${fast.id}`));
  await box.locator('button', { hasText: 'take away' }).click();
  await box.waitFor({ state: 'detached' });
  assert.ok(!page.url().includes('beside'));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('requests by server: how long they took, a typical and a slow one', async () => {
  const { summary } = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const [s] = summary.servers;
  const { page, trouble } = await shows(smtp.url);
  const box = page.locator('.servers');
  // What nobody answered took no time, and has no place in the picture.
  const drawn = s.distribution.filter(b => b.from_ns > 0);
  assert.equal(await box.locator('.column').count(), drawn.length);
  const heights = await box.locator('.column').evaluateAll(all => all.map(e => e.getBoundingClientRect().height));
  const most = Math.max(...drawn.map(b => b.requests));
  drawn.forEach((b, i) => {
    assert.ok(Math.abs(heights[i] - Math.max(2, (119 * b.requests) / most)) < 3, `${i}: ${heights}`);
  });
  const marks = await box.locator('.mark').allTextContents();
  assert.deepEqual(marks, [`median ${duration(s.median_ns)}`, `p95 ${duration(s.p95_ns)}`]);
  const mean = b => Object.values(b.causes).reduce((x, y) => x + y, 0) / b.requests;
  const strips = await box.locator('.strip b').allTextContents();
  assert.deepEqual(strips, [duration(mean(s.typical)), duration(mean(s.slow))]);
  const rows = await box.locator('.differences tr').count();
  assert.ok(rows >= 2, `${rows}`);
  if (s.slow_because) assert.ok((await box.textContent()).includes(`${duration(s.slow_because.more_ns)} more of`));
  await box.locator('a', { hasText: 'One of each' }).click();
  await page.locator('.beside h2', { hasText: 'beside' }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('several servers are a table, each with its distribution', async () => {
  const { summary } = JSON.parse(tcpwhy('explain', MANY, '--json'));
  const all = summary.servers.filter(s => s.requests > 0);
  assert.ok(all.length > 2);
  const { page, trouble } = await shows(many.url);
  const table = page.locator('[aria-label="Servers"]');
  const rows = await until(async () => {
    const shown = await table.locator('.rows .tr').allTextContents();
    assert.equal(shown.length, Math.min(all.length, 18));
    return shown;
  });
  for (const [i, row] of rows.entries()) assert.ok(row.includes(all[i].server), row);
  assert.equal(await page.locator('.server h3').textContent(), all[0].server);
  await table.locator('.rows .tr').nth(1).click();
  await until(async () => {
    assert.equal(await page.locator('.server h3').textContent(), all[1].server);
    assert.ok((await table.locator('.rows .tr').nth(1).getAttribute('class')).includes('chosen'));
  });
  assert.deepEqual(trouble, []);
  await page.close();
});

test('frames lead to their span', async () => {
  const json = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const f = json.findings.find(x => x.cause === 'nagle_delayed_ack');
  const { page, trouble } = await shows(smtp.url);
  const links = page.locator(`[data-finding="${f.id}"] .frames a`);
  await until(async () => assert.equal(await links.count(), Math.min(5, f.evidence.length)));
  for (const k of [0, 2]) {
    const frames = f.evidence[k].key.join('>');
    assert.equal(await links.nth(k).textContent(), frames);
    await links.nth(k).click();
    await page.locator('.drawer', { hasText: `frame.number in {${f.evidence[k].key.join(',')}}` }).waitFor();
    await page.goBack();
    await page.locator('.verdict').waitFor();
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test('paper keeps axes and alignment, and what is folded stays folded', async () => {
  const { page, trouble } = await shows(`${loss.url}#connection=1`);
  const sheets = pdf => pdf.toString('latin1').match(/\/Type\s*\/Page\b(?!s)/g).length;
  await settled(page);
  await page.evaluate(() =>
    // After every other listener, and before the page is laid out for paper.
    addEventListener('beforeprint', () => {
      const box = e => e.getBoundingClientRect();
      window.onPaper = {
        plots: [...document.querySelectorAll('.u-over')].map(e => Math.round(box(e).left)),
        room: Math.round(box(document.querySelector('.graphs')).left),
        right: Math.max(...[...document.querySelectorAll('canvas')].map(e => box(e).right)),
        inside: box(document.querySelector('main')).right,
      };
    }),
  );
  const before = await page.evaluate(() => document.querySelectorAll('details[open]').length);
  await page.pdf({ path: join(FOLDER, 'axes.pdf'), format: 'A4' });
  const paper = await page.evaluate(() => window.onPaper);
  assert.equal(paper.plots.length, 5);
  for (const left of paper.plots) assert.ok(left - paper.room >= 50, `no axis: ${JSON.stringify(paper)}`);
  assert.equal(new Set(paper.plots).size, 1, JSON.stringify(paper));
  assert.ok(paper.right <= paper.inside && paper.inside - paper.room <= 720, JSON.stringify(paper));
  assert.equal(await page.evaluate(() => document.querySelectorAll('details[open]').length), before);
  await until(async () => {
    const width = await page.evaluate(() => document.querySelector('.graphs').clientWidth);
    assert.ok(width > 1000, 'the screen is back');
  });
  assert.deepEqual(trouble, []);
  await page.close();
  const verdict = await shows(six.url);
  const pdf = await verdict.page.pdf({ path: join(FOLDER, 'six.pdf'), format: 'A4' });
  assert.ok(sheets(pdf) <= 3, `${sheets(pdf)} sheets`);
  await verdict.page.close();
});

test('a small screen: rows of two lines, an empty search says so', async () => {
  const { page, trouble } = await shows(many.url, { width: 400, height: 800 });
  const table = page.locator('[aria-label="Connections"]');
  await table.scrollIntoViewIfNeeded();
  await until(async () => {
    const [inner, outer] = await table.evaluate(e => [e.scrollWidth, e.clientWidth]);
    assert.ok(inner <= outer, `${inner} in ${outer}`);
  });
  const json = JSON.parse(tcpwhy('explain', MANY, '--json'));
  const row = await table.locator('.rows .tr').first().innerText();
  const id = Number(row.match(/\d+/)[0]);
  const c = json.connections.find(k => k.id === id);
  assert.ok(row.includes(c.client) && row.includes(c.server), row);
  assert.match(row, /(?:ms|s|µs|ns)\b/);
  await page.fill('#search', 'nothing like that');
  const empty = page.locator('[aria-label="Connections"] .empty');
  await empty.waitFor();
  await until(async () => {
    const [box, frame] = [await empty.boundingBox(), await table.boundingBox()];
    assert.ok(box.y + box.height <= frame.y + frame.height + 1, 'the sentence is cut off');
  });
  await empty.locator('button').click();
  await until(async () => {
    assert.equal(await page.inputValue('#search'), '');
    assert.ok((await table.locator('.rows .tr').count()) > 0);
  });
  assert.deepEqual(trouble, []);
  await page.close();
});

test('columns give way before a table is cut; no TCP time is a dash', async () => {
  const { causes } = JSON.parse(readFileSync(join(ROOT, 'docs/schema/causes.json'), 'utf8'));
  const json = JSON.parse(tcpwhy('explain', MANY, '--json'));
  const tcp = c => causes.some(k => k.class === 'T' && (c.budget[k.id] ?? 0) + (c.gap_budget[k.id] ?? 0) > 0);
  for (const width of [1280, 820]) {
    const { page } = await shows(many.url, { width });
    const table = page.locator('[aria-label="Connections"]');
    await until(async () => {
      const [inner, outer] = await table.evaluate(e => [e.scrollWidth, e.clientWidth]);
      assert.ok(inner <= outer, `${width}: ${inner} in ${outer}`);
    });
    const heads = (await table.locator('.th > div:visible').allTextContents()).map(t => t.trim());
    for (const kept of ['id', 'server', 'duration', 'TCP', 'worst cause']) assert.ok(heads.includes(kept), kept);
    const left = page.locator('.lists .left-out');
    if (width === 820) assert.match(await left.textContent(), /RTT/);
    else assert.ok(!(await left.isVisible()));
    assert.ok(json.connections.some(c => !tcp(c)));
    const at = heads.indexOf('TCP');
    const cells = await table
      .locator('.rows .tr')
      .evaluateAll((rows, i) => rows.map(r => r.children[i].textContent), at);
    assert.ok(cells.includes('-') && !cells.includes('0 ns'), `${cells}`);
    await page.close();
  }
});

/** CIE L*a*b* of a colour as somebody sees it (Machado, Oliveira and Fernandes 2009, severity 1). */
const EYES = {
  all: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  tritan: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
function lab(hex, eye) {
  const light = [1, 3, 5].map(i => {
    const v = parseInt(hex.slice(i, i + 2), 16) / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  const mix = row => row.reduce((s, k, i) => s + k * light[i], 0);
  const seen = [0, 3, 6].map(i => Math.min(1, Math.max(0, mix(eye.slice(i, i + 3)))));
  const times = row => row.reduce((s, k, i) => s + k * seen[i], 0);
  const f = t => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [x, y, z] = [
    f(times([0.4124, 0.3576, 0.1805]) / 0.9505),
    f(times([0.2126, 0.7152, 0.0722])),
    f(times([0.0193, 0.1192, 0.9505]) / 1.089),
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

test('colours without a pattern are told apart by every eye', async () => {
  for (const scheme of ['light', 'dark']) {
    const { page } = await shows(smtp.url, { scheme });
    const groups = await page.evaluate(() =>
      ['path', 'applications', 'small_writes', 'windows', 'congestion', 'loss', 'opening', 'unknown'].map(name => {
        const patch = document.body.appendChild(document.createElement('i'));
        patch.className = `g-${name}`;
        const style = getComputedStyle(patch);
        return {
          name,
          colour: getComputedStyle(document.documentElement).getPropertyValue(`--g-${name}`).trim(),
          plain: style.backgroundImage === 'none',
        };
      }),
    );
    const plain = groups.filter(g => g.plain);
    assert.deepEqual(
      plain.map(g => g.name),
      ['path', 'applications', 'small_writes', 'loss'],
    );
    for (const [eye, matrix] of Object.entries(EYES))
      for (const [i, a] of plain.entries())
        for (const b of plain.slice(i + 1)) {
          const [p, q] = [lab(a.colour, matrix), lab(b.colour, matrix)];
          const apart = Math.hypot(...p.map((v, k) => v - q[k]));
          assert.ok(apart > 14, `${scheme}, ${eye}: ${a.name} and ${b.name} are ${apart.toFixed(1)} apart`);
        }
    await page.close();
  }
});
