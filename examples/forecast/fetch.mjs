// Requests in series, then five at a time, then a body of a megabyte: fetch against node:http.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  let n = 0;
  request.on('data', d => {
    n += d.length;
  });
  request.on('end', () => response.end('x'.repeat(800) + n));
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const url = `http://127.0.0.1:${server.address().port}/`;
const [what] = process.argv.slice(2);
const get = async options => (await fetch(url, options)).text();
if (what === 'series') for (let i = 0; i < 20; i++) await get();
if (what === 'parallel') for (let i = 0; i < 6; i++) await Promise.all(Array.from({ length: 5 }, () => get()));
if (what === 'upload') for (let i = 0; i < 3; i++) await get({ method: 'POST', body: 'x'.repeat(1e6) });
process.exit(0);
