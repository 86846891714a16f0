// A server under test, and requests by hand.
import { spawn } from 'node:child_process';
import { request } from 'node:http';
import { BIN } from './program.mjs';

/** The cookie of each server, by its origin. */
export const cookies = new Map();

/** Starts a server; `ready` is where it is, without the token, which went into a cookie; `address` is what it printed. */
export function serve(...args) {
  const child = spawn(BIN, ['serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said = { text: '' };
  const ended = new Promise(done => child.on('close', code => done(code)));
  const ready = new Promise((done, fail) => {
    child.stderr.on('data', d => {
      said.text += d;
      const urls = said.text.match(/open .*\(end with/)?.[0].match(/http:\S+/g);
      if (urls) enter(urls.at(-1)).then(done, fail);
    });
    child.on('exit', code => fail(new Error(`ended with ${code}: ${said.text}`)));
  });
  ready.catch(() => {});
  const address = async () => {
    await ready;
    return said.text.match(/http:\S+/g).at(-1);
  };
  return {
    child,
    ready,
    address,
    ended,
    said,
    stop: async () => {
      child.kill('SIGINT');
      return ended;
    },
  };
}

/** Goes through the door: where the server is, without the token. */
async function enter(url) {
  const { origin, pathname, search } = new URL(url);
  if (search) {
    const { headers } = await ask(origin, pathname + search);
    cookies.set(origin, headers['set-cookie'][0].split(';')[0]);
  }
  return `${origin}/`;
}

/** One request by hand, with the cookie of that server unless `plain`. */
export const ask = (url, path, { method = 'GET', headers = {}, body, plain } = {}) =>
  new Promise((done, fail) => {
    const { hostname, port, origin } = new URL(url);
    const known = cookies.has(origin) && !plain ? { Cookie: cookies.get(origin) } : {};
    const r = request(
      { hostname, port, path, method, headers: { ...known, ...headers }, setHost: !('Host' in headers) },
      answer => {
        const parts = [];
        answer.on('data', d => parts.push(d));
        answer.on('end', () =>
          done({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString('utf8') }),
        );
      },
    );
    r.on('error', fail);
    r.end(body);
  });

/** Addresses that a page from there may ask. */
export const own = url => new RegExp(`^${url.replace(/\W/g, '\\$&')}`);
