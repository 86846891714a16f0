// The page in a browser: node --test web/tests (scripts/test.py builds the program first).
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, frames, open, quickest, settled, until } from './browser.mjs';
import { looksAsBefore } from './golden.mjs';
import { duration, FOLDER, generated, LOSS, page as pageOf, percent, ROOT, SMTP, tcpwhy } from './program.mjs';

let chromium, smtp, loss;

before(async () => {
  chromium = await browser();
  smtp = pageOf(SMTP, 'smtp.html');
  loss = pageOf(LOSS, 'loss.html');
});
after(() => chromium.close());

const shows = (url, options) => open(chromium.context, url, options);

/** The pixels of all graphs in sight, as a number. Others are drawn when they come back, or in the next frame if they only just went. */
const pixels = page =>
  page.evaluate(() => {
    const sight = [...document.querySelectorAll('canvas')].filter(c => {
      const box = c.getBoundingClientRect();
      return box.top < innerHeight && box.bottom > 0;
    });
    const all = sight.map(c => c.toDataURL()).join();
    let hash = 0;
    for (let i = 0; i < all.length; i++) hash = (Math.imul(hash, 31) + all.charCodeAt(i)) | 0;
    return `${sight.length} graphs: ${hash}`;
  });
/** The picture that is not `before`, as it stands when nothing draws any more. */
const another = async (page, before) => {
  await until(async () => assert.notEqual(await pixels(page), before));
  await settled(page);
  return pixels(page);
};

test('the first screen says what the JSON says', async () => {
  const json = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const { page, trouble } = await shows(smtp.url);
  const verdict = tcpwhy('explain', SMTP, '--quiet').split('\n\n')[0].replace(/\s+/g, ' ').trim();
  assert.equal(await page.textContent('.verdict h1'), verdict);
  const shown = json.findings.filter(f => f.requests_ns > 0 && !f.minor);
  assert.ok(shown.length >= 2);
  for (const f of shown) {
    const card = page.locator(`[data-finding="${f.id}"]`);
    assert.equal(await card.locator('.lost b').textContent(), duration(f.requests_ns));
    assert.equal(await card.locator('.lost span').textContent(), percent(f.share_of_requests));
    assert.ok((await card.textContent()).includes(f.why), f.id);
    assert.equal(await card.locator('h3 .link').textContent(), f.title);
    const won = x => x.saves_ns > 0;
    const saves = (f.fixes.find(x => won(x) && x.basis === 'predicted') ?? f.fixes.find(won))?.saves_ns;
    if (saves && f.class === 'T') assert.ok((await card.locator('.gain').textContent()).includes(duration(saves)));
    for (const fix of f.fixes) assert.ok((await card.textContent()).includes(fix.title), fix.title);
  }
  // The parts of the bar are the times of the findings.
  const nagle = shown.find(f => f.cause === 'nagle_delayed_ack');
  assert.equal(await page.locator('[data-cause="nagle_delayed_ack"] .time').textContent(), duration(nagle.requests_ns));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('what to change, and what it wins', async () => {
  // One finding, whose first fix wins most; and one fix against two findings, which is said once.
  for (const [capture, url, causes, rows] of [
    [SMTP, smtp.url, ['nagle_delayed_ack'], 1],
    [LOSS, loss.url, ['slow_start', 'handshake'], 2],
  ]) {
    const json = JSON.parse(tcpwhy('explain', capture, '--json'));
    const total = json.summary.request_ns;
    const against = causes.map(id => json.findings.find(f => f.cause === id));
    const first = against[0].fixes.find(x => x.saves_ns > 0 && x.basis === 'predicted');
    const won = against.reduce(
      (sum, f) => sum + f.fixes.find(x => x.id === first.id && x.where === first.where).saves_ns,
      0,
    );
    const { page, trouble } = await shows(url);
    const shown = page.locator('.changes li');
    await until(async () => assert.ok((await shown.count()) >= rows));
    const text = await shown.first().textContent();
    for (const part of [`−${duration(won)}`, 'predicted', first.title, ...against.map(f => f.title)])
      assert.ok(text.includes(part), `${part} in ${text}`);
    const titles = await page.locator('.changes li .name').evaluateAll(all => all.map(e => e.firstChild.textContent));
    assert.equal(new Set(titles).size, titles.length, 'each change once');
    if (capture === SMTP) assert.ok(text.includes(`${duration(total)} → ${duration(total - won)}`), text);
    // What was replayed is said with its times, which are not those of the capture.
    const model = await page.locator(`[data-finding="${against[0].id}"] .model`).textContent();
    if (capture === SMTP) assert.match(model, /^Replayed: connection 1, \d+ of 32 requests: .*scaled to all\./);
    await shown.first().locator('button').click();
    const link = page.locator(`[data-finding="${against[0].id}"] .link`);
    await until(async () => assert.ok(await link.evaluate(e => e === document.activeElement)));
    assert.deepEqual(trouble, []);
    await page.close();
  }
  const quiet = pageOf(join(ROOT, 'captures/packet-headers__testdata_large-ndt.pcap'), 'quiet.html');
  const { page } = await shows(quiet.url);
  assert.match(
    await page.textContent('.changes'),
    /Nothing in TCP or the path: no change of them would win as much as 1 % of the time\. Most of it went here: The sending application paused/,
  );
  await page.close();
});

test('a window of keys', async () => {
  const { page, trouble } = await shows(`${smtp.url}#connection=1`);
  await page.keyboard.press('?');
  await page.locator('dialog.keys').waitFor();
  assert.ok((await page.textContent('dialog.keys')).includes('next, previous cause'));
  await page.keyboard.press('Escape');
  await page.locator('dialog.keys').waitFor({ state: 'hidden' });
  assert.match(page.url(), /#connection=1$/, 'the window alone was closed');
  await page.keyboard.press('Escape');
  await page.locator('.verdict').waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('what took most of a connection stands among what was found on it', async () => {
  // A link, alone in its capture; the distance, on one of two connections.
  for (const name of ['zeek__tcp_retransmit-fast009.pcap', 'PcapPlusPlus__raw_ip.pcap']) {
    const capture = join(ROOT, 'captures', name);
    const json = JSON.parse(tcpwhy('explain', capture, '--json'));
    const { url } = pageOf(capture, `${name}.html`);
    for (const c of json.connections.filter(c => Object.keys(c.budget).length)) {
      const [cause, ns] = Object.entries(c.budget).reduce((a, b) => (b[1] > a[1] ? b : a));
      const { page, trouble } = await shows(`${url}#connection=${c.id}`);
      const first = page.locator('.connection article').first();
      await first.waitFor();
      assert.equal(await first.locator('.lost b').textContent(), duration(ns), `${name} ${c.id}`);
      assert.equal(await first.locator('h3 .link').getAttribute('title'), `what ${cause} is`);
      assert.deepEqual(trouble, []);
      await page.close();
    }
  }
});

test('what is wider than a narrow page is reached by keys', async () => {
  const narrow = { width: 420, height: 800 };
  for (const [place, least] of [
    ['#cause=send_buffer', 2],
    ['#connection=1&exchange=19', 0],
    ['', 0],
  ]) {
    const { page, trouble } = await shows(`${smtp.url}${place}`, narrow);
    await until(async () => assert.ok((await page.locator('.scroll[tabindex="0"]').count()) >= Math.min(least, 1)));
    const scrolled = await page.evaluate(() =>
      [...document.querySelectorAll('*')]
        .filter(e => e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
        .map(e => [e.className, e.tabIndex, e.getAttribute('role'), e.getAttribute('aria-label')]),
    );
    assert.ok(scrolled.length >= least, `${place}: ${scrolled}`);
    for (const [of, tab, role, label] of scrolled)
      assert.ok(tab === 0 && role && label, `${place}: ${of} ${role} ${label}`);
    const box = page.locator('.scroll[tabindex="0"]').first();
    if (await box.count()) {
      await box.focus();
      await page.keyboard.press('ArrowRight');
      await until(async () => assert.ok((await box.evaluate(e => e.scrollLeft)) > 0));
    }
    assert.deepEqual(trouble, []);
    await page.close();
  }
});

test('no number is cut on a narrow page', async () => {
  // 54, 22, 13 and 10 % of its time: numbers fit in the first two at this width, and not in the last.
  const capture = join(ROOT, 'captures/suricata-verify__http-gap-simple_input.pcap');
  const { url } = pageOf(capture, 'bars.html');
  const { page, trouble } = await shows(url, { width: 420, height: 800 });
  const labels = await page.locator('.bar .part > span').evaluateAll(all =>
    all.map(e => ({
      text: e.innerText.trim(),
      seen: e.getClientRects().length > 0,
      cut: e.querySelector('b').offsetWidth > e.clientWidth,
      title: e.querySelector('span').getClientRects().length > 0,
      whole: e.scrollWidth <= e.clientWidth,
    })),
  );
  assert.ok(labels.length >= 3 && labels[0].seen && labels.some(l => !l.seen), JSON.stringify(labels));
  for (const l of labels.filter(l => l.seen)) assert.ok(!l.cut && (l.title || l.whole), JSON.stringify(l));
  await page.close();

  const graphs = await shows(`${url}#connection=1`, { width: 420, height: 800 });
  await settled(graphs.page);
  const [room, needed] = await graphs.page.evaluate(() => {
    const c = document.createElement('canvas').getContext('2d');
    c.font = `11px ${getComputedStyle(document.documentElement).getPropertyValue('--font')}`;
    return [document.querySelector('.u-over').offsetLeft, c.measureText('200 kbit/s').width];
  });
  // A tick of 4 and a gap of 4.
  assert.ok(room >= needed + 8, `${needed} in ${room}`);
  assert.deepEqual([...trouble, ...graphs.trouble], []);
  await graphs.page.close();
});

test('commands in a fix are code', async () => {
  const { page } = await shows(smtp.url);
  assert.ok((await page.locator('.fix code').count()) > 0);
  for (const fix of await page.locator('.fix').allTextContents()) assert.ok(!fix.includes('`'), fix);
  await page.close();
});

test('requests that wait for each other are something to change', async () => {
  const turns = pageOf(join(ROOT, 'captures/programs/one_worker.pcap'), 'turns.html');
  const { page, trouble } = await shows(turns.url);
  const first = page.locator('.changes li').first();
  await until(async () => assert.match(await first.textContent(), /−2\.61 s.*at most.*Work on more requests at once/));
  const card = page.locator('.finding', { hasText: 'waited for others before them' }).first();
  assert.match(await card.locator('.fix').first().textContent(), /^fix: Work on more requests at once/);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('connections and exchanges equal the JSON', async () => {
  const json = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const [c] = json.connections;
  const { page, trouble } = await shows(`${smtp.url}#connection=1`);
  const rows = await until(async () => {
    const all = await page.locator('[aria-label="Exchanges"] .rows .tr').allTextContents();
    assert.ok(all.length >= 9);
    return all;
  });
  for (const [i, row] of rows.entries()) {
    const x = c.exchanges[i];
    for (const part of [
      `${x.id}`,
      duration(x.end_ns - x.start_ns),
      `${x.request_bytes} B`,
      `${(x.start_ns / 1e9).toFixed(6)} s`,
    ])
      assert.ok(row.includes(part), `${part} in ${row}`);
  }
  for (const [cause, ns] of Object.entries(c.budget))
    assert.equal(await page.locator(`.head [data-cause="${cause}"] .time`).textContent(), duration(ns));
  assert.deepEqual(trouble, []);
  await page.close();
});

test('from the verdict to the packets that prove it', async () => {
  const json = JSON.parse(tcpwhy('explain', SMTP, '--json'));
  const f = json.findings.find(x => x.cause === 'nagle_delayed_ack');
  const { page, trouble } = await shows(smtp.url);
  await page.locator(`[data-finding="${f.id}"] .go`).click();
  await page.locator('.drawer').waitFor();
  assert.match(page.url(), new RegExp(`connection=${f.example.connection}&exchange=${f.example.exchange}&span=`));
  const evidence = await page.locator('.evidence li').allTextContents();
  assert.equal(evidence.length, f.example.frames.key.length);
  for (const [i, frame] of f.example.frames.key.entries())
    assert.ok(evidence[i].startsWith(`frame ${frame} `), evidence[i]);
  assert.ok(
    (await page.locator('.filter').textContent()).includes(`frame.number in {${f.example.frames.key.join(',')}}`),
  );
  await page.locator('.drawer .page summary').click();
  assert.ok((await page.locator('.drawer .page').textContent()).includes('Minshall'));
  await page.keyboard.press('Escape');
  await page.locator('.drawer').waitFor({ state: 'hidden' });
  // The ladder and the table hold the same frames.
  await until(async () => {
    const table = await page.locator('[aria-label^="Packets of exchange"] .rows .tr').allTextContents();
    assert.deepEqual(
      table.map(t => Number(t.match(/^\d{1,3}(?=\+)/)?.[0])),
      [100, 101, 102, 103, 104],
    );
  });
  const ladder = await page.locator('.ladder .on').allTextContents();
  assert.equal(ladder.length, 5);
  assert.match(ladder[2], /^102 {2}P\. {2}129 B/);
  await page.locator('.ladder .band').first().click();
  await page.locator('.drawer').waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('zoom, pan and keys change what is drawn', async () => {
  const { page, trouble } = await shows(`${loss.url}#connection=1`);
  await page.locator('.graphs').focus();
  await settled(page);
  const all = await pixels(page);
  await page.keyboard.press('+');
  const near = await another(page, all);
  await page.keyboard.press('ArrowRight');
  await another(page, near);
  await page.keyboard.press('0');
  await until(async () => assert.ok((await pixels(page)) === all, 'the whole again, to the pixel'));
  const over = page.locator('.u-over').first();
  await over.scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector('.graph-box').scrollIntoView());
  await settled(page);
  const box = await over.boundingBox();
  const view = () => page.evaluate(() => [window.tcpwhy.graphs.from, window.tcpwhy.graphs.to]);
  const before = await view();
  await page.mouse.move(box.x + box.width / 2, box.y + 60);
  await page.keyboard.down('Shift');
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 120, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.locator('.drawer', { hasText: 'A stretch of time' }).waitFor();
  await settled(page);
  assert.deepEqual(await view(), before, 'choosing does not move');
  await page.keyboard.press('z');
  const chosen = await until(async () => {
    assert.notDeepEqual(await view(), before);
    return view();
  });
  await page.keyboard.press('Escape');
  await page.locator('.drawer').waitFor({ state: 'hidden' });
  await settled(page);
  const share = (chosen[1] - chosen[0]) / (before[1] - before[0]);
  assert.ok(Math.abs(share - 120 / box.width) < 0.02, `${share}`);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const dragged = await until(async () => {
    const now = await view();
    assert.ok(now[0] > chosen[0], 'dragging to the left shows what is later');
    return now;
  });
  // Neither a wheel nor a moved mouse is waited for by who turns it.
  await page.mouse.wheel(0, 400);
  await until(async () => {
    const [from, to] = await view();
    assert.ok(to - from > dragged[1] - dragged[0], 'the wheel zooms out');
  });
  await page.mouse.click(box.x + box.width / 2, box.y + 60);
  await page.locator('.drawer').waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('deep links', async () => {
  const { page, trouble } = await shows(`${smtp.url}#connection=1&exchange=12`);
  await settled(page);
  assert.equal(await page.locator('.exchange h2').textContent(), 'Exchange 12');
  await page.keyboard.press(']');
  await page.locator('.exchange h2', { hasText: 'Exchange 13' }).waitFor();
  await page.goBack();
  await page.locator('.exchange h2', { hasText: 'Exchange 12' }).waitFor();
  await page.evaluate(() => {
    location.hash = 'connection=99';
  });
  await page.locator('.missing', { hasText: 'no connection 99' }).waitFor();
  await page.evaluate(() => {
    location.hash = 'cause=send_buffer';
  });
  await page.locator('.drawer', { hasText: 'SO_SNDBUF' }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});

test('markup in names is text', async () => {
  const name = '<img src=x onerror=alert(1)><script>alert(2)<\u002fscript>.pcap'.replaceAll('/', '%2f');
  copyFileSync(SMTP, join(FOLDER, name));
  const hostile = pageOf(join(FOLDER, name), 'hostile.html');
  const { page, trouble } = await shows(hostile.url);
  assert.equal(await page.locator('header .file').textContent(), name);
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(trouble, []);
  await page.close();
});

test('without scripts the verdict is readable', async () => {
  const bare = await browser({ javaScriptEnabled: false });
  try {
    const { page } = await open(bare.context, smtp.url, { script: false });
    const text = await page.locator('#plain').innerText();
    for (const part of ['1.16 s (93 %) of it is Nagle', 'Nagle held a small write', 'TCP_NODELAY', '127.0.0.1:38718'])
      assert.ok(text.includes(part), part);
    assert.ok(await page.locator('#plain h1').isVisible());
  } finally {
    await bare.close();
  }
});

test('the page may reach nothing', () => {
  const text = readFileSync(smtp.path, 'utf8');
  assert.match(
    text,
    /default-src 'none'; script-src 'sha256-[^']+'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'/,
  );
  assert.match(text, /Copyright \(c\) 2022 Leon Sorokin/);
});

test('paper: light, and nothing to press', async () => {
  const { page, trouble } = await shows(`${smtp.url}#connection=1&exchange=12`, { scheme: 'dark' });
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  assert.equal(
    await page.evaluate(() => getComputedStyle(document.querySelector('section')).backgroundColor),
    'rgb(255, 255, 255)',
  );
  assert.ok(!(await page.locator('.buttons').first().isVisible()));
  const pdf = await page.pdf({ path: join(FOLDER, 'paper.pdf') });
  assert.ok(pdf.length > 20_000);
  assert.deepEqual(trouble, []);
  await page.close();
});

const places = {
  overview: () => smtp.url,
  exchange: () => `${smtp.url}#connection=1&exchange=19`,
  graphs: () => `${loss.url}#connection=1`,
};
for (const [name, url] of Object.entries(places))
  for (const width of [1280, 400])
    for (const scheme of ['light', 'dark'])
      test(`looks as before: ${name}, ${width}, ${scheme}`, async () => {
        const { page, trouble } = await shows(url(), { width, height: width === 400 ? 800 : 900, scheme });
        if (name !== 'overview') {
          await settled(page);
          await page.evaluate(() =>
            document.querySelector(location.hash.includes('exchange') ? '.exchange' : '.graph-box').scrollIntoView(),
          );
          await settled(page);
        }
        await until(async () =>
          assert.equal(
            await page.evaluate(() => document.documentElement.scrollWidth),
            width,
            'nothing is wider than the screen',
          ),
        );
        await looksAsBefore(page, `${name}-${width}-${scheme}`);
        assert.deepEqual(trouble, []);
        await page.close();
      });

test('a million segments', async t => {
  const capture = generated('flows', '1000000', '200');
  if (!capture) {
    t.skip('cargo could not build the example gen_capture');
    return;
  }
  const big = pageOf(capture, 'big.html');
  const size = statSync(big.path).size;
  t.diagnostic(`${(size / 1e6).toFixed(2)} MB`);
  assert.ok(size <= 6e6, `${size} bytes`);
  // A machine that does something else besides: the best of some tries.
  let opened = Infinity,
    fps = 0;
  for (let i = 0; i < 8 && (opened > 2000 || fps < 30); i++) {
    const start = performance.now();
    const { page, trouble } = await shows(big.url);
    opened = Math.min(opened, performance.now() - start);
    await page.evaluate(() => {
      const largest = window.tcpwhy.data.page.tracks.reduce((a, b) => (b.kept > a.kept ? b : a));
      location.hash = `connection=${largest.connection}`;
    });
    await page.waitForFunction(() => window.tcpwhy.graphs?.drawn > 0);
    fps = Math.max(
      fps,
      await page.evaluate(
        () =>
          new Promise(done => {
            const g = window.tcpwhy.graphs;
            g.zoom(0.7);
            let n = 0;
            const first = g.drawn,
              start = performance.now();
            const tick = () => {
              g.pan(n % 40 < 20 ? 0.005 : -0.005);
              if (++n < 80) requestAnimationFrame(tick);
              else done(((g.drawn - first) / (performance.now() - start)) * 1000);
            };
            requestAnimationFrame(tick);
          }),
      ),
    );
    assert.deepEqual(trouble, []);
    await page.close();
  }
  t.diagnostic(`opened in ${opened.toFixed(0)} ms, ${fps.toFixed(0)} frames/s`);
  assert.ok(opened <= 2000, `opened in ${opened} ms`);
  assert.ok(fps >= 30, `${fps} frames/s`);
});

test('ten thousand connections are searched at once', async t => {
  const capture = generated('short', '10000');
  if (!capture) {
    t.skip('cargo could not build the example gen_capture');
    return;
  }
  const many = pageOf(capture, 'many.html');
  t.diagnostic(`${(statSync(many.path).size / 1e6).toFixed(2)} MB`);
  const json = JSON.parse(tcpwhy('explain', capture, '--json'));
  const wanted = json.connections[7654];
  const { page, trouble } = await shows(many.url);
  const found = page.locator('.counted', { hasText: /^1 connection of/ });
  const took = await quickest(1000, {
    before: async () => {
      await page.fill('#search', '');
      await found.waitFor({ state: 'hidden' });
      await frames(page);
    },
    once: async () => {
      await page.fill('#search', wanted.client);
      await found.waitFor();
    },
  });
  t.diagnostic(`search: ${took.toFixed(0)} ms`);
  assert.ok(took < 1000, `${took} ms`);
  const row = page.locator('[aria-label="Connections"] .rows .tr');
  await until(async () => assert.equal(await row.count(), 1));
  assert.ok((await row.textContent()).includes(wanted.server));
  await page.fill('#search', 'nothing like that');
  await page.locator('.empty').waitFor();
  await page.fill('#search', '');
  await page.locator('[aria-label="Connections"] button', { hasText: 'duration' }).click();
  const longest = Math.max(...json.connections.map(c => c.end_ns - c.start_ns));
  await until(async () => assert.ok((await row.first().textContent()).includes(duration(longest))));
  assert.ok((await row.count()) < 60, 'only the rows in sight exist');
  await row.first().click();
  await page.locator('.connection').waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
});
