// A server under test, and requests by hand.
import { spawn } from 'node:child_process';
import { request } from 'node:http';
import { BIN } from './program.mjs';

/** Starts a server; resolves when it says where it is. */
export function serve(...args) {
  const child = spawn(BIN, ['serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const said = { text: '' };
  const ended = new Promise(done => child.on('close', code => done(code)));
  const ready = new Promise((done, fail) => {
    child.stderr.on('data', d => {
      said.text += d;
      const url = said.text.match(/open (http:\S+)/);
      if (url) done(url[1]);
    });
    child.on('exit', code => fail(new Error(`ended with ${code}: ${said.text}`)));
  });
  ready.catch(() => {});
  return { child, ready, ended, said, stop: async () => { child.kill('SIGINT'); return ended; } };
}

/** One request by hand. */
export const ask = (url, path, { method = 'GET', headers = {}, body } = {}) => new Promise((done, fail) => {
  const { hostname, port } = new URL(url);
  const r = request({ hostname, port, path, method, headers, setHost: !('Host' in headers) }, answer => {
    const parts = [];
    answer.on('data', d => parts.push(d));
    answer.on('end', () => done({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString('utf8') }));
  });
  r.on('error', fail);
  r.end(body);
});

/** Addresses that a page from there may ask. */
export const own = url => new RegExp(`^${url.replace(/\W/g, '\\$&')}`);
